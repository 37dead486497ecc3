// An agent on @a2a-js/sdk 1.3.0, for the tests of package a2a. It listens on a
// free port and prints its URL on one line.
//
// COMPAT=1 serves protocol 0.3 on the same URLs, too.
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
import { Role, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, restHandler, UserBuilder } from '@a2a-js/sdk/server/express';

const compat = process.env.COMPAT === '1';

const part = ($case, value) => ({ content: { $case, value }, metadata: undefined, filename: '', mediaType: '' });

/** What this agent answers: an action if it is asked about a failed step, else an echo. */
function answerTo(message) {
  const data = message.parts.find((p) => p.content?.$case === 'data')?.content.value;
  if (data?.schema_version) {
    return [part('data', { type: 'fixed_output', diagnosis: 'served by a2a-js 1.3', output: { input: data } })];
  }
  const text = message.parts.find((p) => p.content?.$case === 'text')?.content.value;
  return [part('text', 'the answer'), part('data', { text: text ?? null, data: data ?? null, contextId: message.contextId, metadata: message.metadata ?? null })];
}

class Executor {
  #behaviour;
  #cancelled = new Map();

  constructor(behaviour) {
    this.#behaviour = behaviour;
  }

  async execute(request, bus) {
    const { taskId, contextId, userMessage } = request;
    const says = (parts) => ({
      messageId: randomUUID(), role: Role.ROLE_AGENT, parts, contextId, taskId: '', extensions: [], referenceTaskIds: [], metadata: undefined,
    });
    const status = (state, parts) => bus.publish(AgentEvent.statusUpdate({
      taskId, contextId, metadata: undefined,
      status: { state, timestamp: new Date().toISOString(), message: parts && { ...says(parts), taskId } },
    }));
    if (this.#behaviour === '/message') {
      bus.publish(AgentEvent.message(says(answerTo(userMessage))));
      bus.finished();
      return;
    }
    bus.publish(AgentEvent.task({
      id: taskId, contextId, artifacts: [], history: [userMessage], metadata: undefined,
      status: { state: TaskState.TASK_STATE_SUBMITTED, timestamp: new Date().toISOString(), message: undefined },
    }));
    if (this.#behaviour === '/input') {
      status(TaskState.TASK_STATE_INPUT_REQUIRED, [part('text', 'Which city?')]);
      bus.finished();
      return;
    }
    status(TaskState.TASK_STATE_WORKING, [part('text', 'thinking')]);
    if (this.#behaviour === '/slow') {
      await new Promise((resolve) => this.#cancelled.set(taskId, resolve));
      status(TaskState.TASK_STATE_CANCELED);
      bus.finished();
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
    if (this.#behaviour === '/fail') {
      status(TaskState.TASK_STATE_FAILED, [part('text', 'upstream exploded')]);
    } else {
      bus.publish(AgentEvent.artifactUpdate({
        taskId, contextId, append: false, lastChunk: true, metadata: undefined,
        artifact: { artifactId: 'a1', name: 'result', description: '', parts: answerTo(userMessage), metadata: undefined, extensions: [] },
      }));
      status(TaskState.TASK_STATE_COMPLETED);
    }
    bus.finished();
  }

  async cancelTask(taskId) {
    this.#cancelled.get(taskId)?.();
  }
}

function serve(app, base, behaviour) {
  const at = (path, protocolBinding, protocolVersion) => ({ url: base + behaviour + path, protocolBinding, protocolVersion, tenant: '' });
  const card = {
    name: 'js13', description: 'sample', version: '1.0.0', provider: undefined,
    supportedInterfaces: [at('/rpc', 'JSONRPC', '1.0'), at('/rest', 'HTTP+JSON', '1.0'), ...(compat ? [at('/rpc', 'JSONRPC', '0.3')] : [])],
    capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: { jwt: { scheme: { $case: 'httpAuthSecurityScheme', value: { description: '', scheme: 'Bearer', bearerFormat: 'JWT' } } } },
    securityRequirements: [{ schemes: { jwt: { list: [] } } }],
    defaultInputModes: ['application/json'], defaultOutputModes: ['application/json'], skills: [], signatures: [],
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Executor(behaviour));
  const options = { requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat: { enabled: compat } };
  app.use(behaviour + '/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler, legacyCompat: { enabled: compat } }));
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
