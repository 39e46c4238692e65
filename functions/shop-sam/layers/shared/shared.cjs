module.exports = { name: 'from the layer' };
