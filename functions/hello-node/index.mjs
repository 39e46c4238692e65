export const handler = async () => ({ statusCode: 200, body: 'hello' });
