export const handler = async (event) => event;
