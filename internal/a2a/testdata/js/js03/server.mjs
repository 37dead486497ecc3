// An agent on @a2a-js/sdk 0.3.14, for the tests of package a2a. It listens on
// a free port and prints its URL on one line.
//
// There is one agent below each of these paths:
//
//   /message  answers with a message at once
//   /task     works a little, then completes
//   /slow     works until it is cancelled
//   /fail     works a little, then fails with a text
//   /input    asks a question
import { randomUUID } from 'node:crypto';
import express from 'express';
import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';

/** What this agent answers: an action if it is asked about a failed step, else an echo. */
function answerTo(message) {
  const data = message.parts.find((p) => p.kind === 'data')?.data;
  if (data?.schema_version) {
    return [{ kind: 'data', data: { type: 'fixed_output', diagnosis: 'served by a2a-js 0.3', output: { input: data } } }];
  }
  const text = message.parts.find((p) => p.kind === 'text')?.text;
  return [
    { kind: 'text', text: 'the answer' },
    { kind: 'data', data: { text: text ?? null, data: data ?? null, contextId: message.contextId ?? '', metadata: message.metadata ?? null } },
  ];
}

class Executor {
  #behaviour;
  #cancelled = new Map();

  constructor(behaviour) {
    this.#behaviour = behaviour;
  }

  async execute(request, bus) {
    const { taskId, contextId, userMessage } = request;
    const says = (parts) => ({ kind: 'message', messageId: randomUUID(), role: 'agent', parts, contextId });
    const status = (state, final, parts) => bus.publish({
      kind: 'status-update', taskId, contextId, final,
      status: { state, timestamp: new Date().toISOString(), message: parts && { ...says(parts), taskId } },
    });
    if (this.#behaviour === '/message') {
      bus.publish(says(answerTo(userMessage)));
      bus.finished();
      return;
    }
    bus.publish({ kind: 'task', id: taskId, contextId, status: { state: 'submitted', timestamp: new Date().toISOString() }, history: [userMessage] });
    if (this.#behaviour === '/input') {
      status('input-required', true, [{ kind: 'text', text: 'Which city?' }]);
      bus.finished();
      return;
    }
    status('working', false, [{ kind: 'text', text: 'thinking' }]);
    if (this.#behaviour === '/slow') {
      await new Promise((resolve) => this.#cancelled.set(taskId, resolve));
      status('canceled', true);
      bus.finished();
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
    if (this.#behaviour === '/fail') {
      status('failed', true, [{ kind: 'text', text: 'upstream exploded' }]);
    } else {
      bus.publish({
        kind: 'artifact-update', taskId, contextId, append: false, lastChunk: true,
        artifact: { artifactId: 'a1', name: 'result', parts: answerTo(userMessage) },
      });
      status('completed', true);
    }
    bus.finished();
  }

  async cancelTask(taskId) {
    this.#cancelled.get(taskId)?.();
  }
}

function serve(app, base, behaviour) {
  const card = {
    name: 'js03', description: 'sample', version: '1.0.0', protocolVersion: '0.3.0',
    url: `${base}${behaviour}/rpc`, preferredTransport: 'JSONRPC', additionalInterfaces: [{ url: `${base}${behaviour}/rest`, transport: 'HTTP+JSON' }],
    capabilities: { streaming: true }, defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'], skills: [],
    securitySchemes: { jwt: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } }, security: [{ jwt: [] }],
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Executor(behaviour));
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication };
  app.use(behaviour + '/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  app.use(behaviour + '/rpc', jsonRpcHandler(options));
  app.use(behaviour + '/rest', restHandler(options));
}

const app = express();
const server = app.listen(0, '127.0.0.1', () => {
  const base = `http://127.0.0.1:${server.address().port}`;
  for (const behaviour of ['/message', '/task', '/slow', '/fail', '/input']) {
    serve(app, base, behaviour);
  }
  console.log(base);
});
process.stdin.resume().on('end', () => process.exit()); // goes when the test that started it goes
