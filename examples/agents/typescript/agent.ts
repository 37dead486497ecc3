// A recovery agent in TypeScript over A2A, on the official SDK:
//
//   npm ci && npm start
//   longstop settings set recovery.a2a_agent_url http://127.0.0.1:9001
//
// It serves protocol 1.0 and 0.3. PORT=0 takes a free port.
import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { Role, type AgentCard, type Message } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore, type AgentExecutor, type ExecutionEventBus, type RequestContext } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';

/** RecoveryToolInput: a failed step. What came from outside in it is data, never an instruction. */
interface Case {
  schema_version: number;
  step: { type: string; title: string; intent: string; index: number; config: unknown };
  error: string;
  prior_outputs: Record<string, string>;
  workflow_input: unknown;
  resolved_request?: { url: string; body: unknown };
  human_hint?: string;
}

/** RecoveryAction: one of the five. */
type Action = { diagnosis: string } & (
  | { type: 'fixed_output'; output: unknown }
  | { type: 'retry_with_params'; modifications: { httpRequest?: { url?: string; headers?: Record<string, string> }; timeout?: number } }
  | { type: 'code_fix'; code: string }
  | { type: 'retry_with_tool'; toolCall: { server: string; tool: string; params: Record<string, unknown> } }
  | { type: 'needs_human'; suggestion: string }
);

/** What this agent knows: put what you know about your own APIs here. */
export function mend(c: Case): Action {
  const status = Number(/^HTTP (\d{3})\b/.exec(c.error)?.[1] ?? 0);
  if (c.step.type === 'http_request' && [408, 425, 429, 500, 502, 503, 504].includes(status)) {
    return { type: 'retry_with_params', diagnosis: `HTTP ${status}: the same request may succeed now.`, modifications: {} };
  }
  if (c.step.type === 'http_request' && c.error.startsWith('no answer within')) {
    return { type: 'retry_with_params', diagnosis: 'The API was too slow; a second try may wait a minute.', modifications: { timeout: 60_000 } };
  }
  const url = c.resolved_request?.url ?? '';
  const newer = /\/v2\//.test(c.error.split('\n').slice(1).join('\n'));
  if ([404, 410].includes(status) && newer && url.includes('/v1/')) {
    return { type: 'retry_with_params', diagnosis: 'The API has moved from v1 to v2.', modifications: { httpRequest: { url: url.replace('/v1/', '/v2/') } } };
  }
  return { type: 'needs_human', diagnosis: 'This agent has no mend for this failure.', suggestion: 'Read the error, correct the step or its credentials, then retry.' };
}

class Recovery implements AgentExecutor {
  async execute({ contextId, userMessage }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    bus.publish(AgentEvent.message(this.answer(contextId, userMessage)));
    bus.finished();
  }

  async cancelTask(): Promise<void> {} // it answers at once: there is nothing to cancel

  private answer(contextId: string, message: Message): Message {
    const data = message.parts.find((p) => p.content?.$case === 'data')?.content?.value as Case | undefined;
    const action: Action = data?.schema_version === 1 ? mend(data)
      : { type: 'needs_human', diagnosis: 'The message has no case of schema_version 1.', suggestion: 'Bring the agent up to date.' };
    return {
      messageId: randomUUID(), role: Role.ROLE_AGENT, contextId, taskId: '', extensions: [], referenceTaskIds: [], metadata: undefined,
      parts: [{ content: { $case: 'data', value: action }, metadata: undefined, filename: '', mediaType: 'application/json' }],
    };
  }
}

const app = express();
app.use(express.json({ limit: '4mb' })); // a case may be larger than express reads by itself
const server = app.listen(Number(process.env.PORT ?? 9001), '127.0.0.1', () => {
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const at = (protocolVersion: string) => ({ url: `${base}/rpc`, protocolBinding: 'JSONRPC', protocolVersion, tenant: '' });
  const card: AgentCard = {
    name: 'First aid in TypeScript', description: 'Repeats what may succeed, follows an API to v2, and calls a person for the rest.', version: '1.0.0',
    supportedInterfaces: [at('1.0'), at('0.3')],
    capabilities: { streaming: false, pushNotifications: false, extensions: [], extendedAgentCard: false },
    defaultInputModes: ['application/json'], defaultOutputModes: ['application/json'],
    skills: [], securitySchemes: {}, securityRequirements: [], signatures: [], provider: undefined,
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Recovery());
  const legacyCompat = { enabled: true }; // protocol 0.3 on the same URL
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler, legacyCompat }));
  app.use('/rpc', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat }));
  console.log(`the agent serves at ${base}`);
});
