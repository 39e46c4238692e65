// Connections are kept, without a change to the function: `danki bench --verify-advice` preloads this to try what keep-alive saves.
// Every agent keeps its connections whatever it is told, the global ones too. What asks for no agent at all stays as it is.
'use strict';

const { syncBuiltinESMExports } = require('node:module');

const kept = ([options]) => [{ ...options, keepAlive: true }];

for (const module of [require('node:http'), require('node:https')]) {
  module.Agent = new Proxy(module.Agent, {
    construct: (agent, given, target) => Reflect.construct(agent, kept(given), target),
    // As a function it is what older classes call to inherit from it.
    apply: (agent, self, given) =>
      self instanceof agent ? Reflect.apply(agent, self, kept(given)) : Reflect.construct(agent, kept(given)),
  });
  module.globalAgent.keepAlive = true;
  module.globalAgent.options.keepAlive = true;
}
syncBuiltinESMExports();
