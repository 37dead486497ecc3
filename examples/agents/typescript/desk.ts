// An agent that a workflow asks, in TypeScript over A2A, on the official SDK:
//
//   cd examples/agents/typescript && npm ci && npm run desk
//   longstop push --kind external --card http://127.0.0.1:9011 --bucket BUCKET --as-pubkey PUBKEY
//   longstop agents try order-desk-in-typescript "Is order 7 late?"
//
// It answers with data, and asks back where something is missing. With LONGSTOP=URL and AGENT=ID it verifies the execution token of
// every request before it acts. PORT=0 takes a free port.
import { createPublicKey, randomUUID, verify, type JsonWebKey } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import express, { type NextFunction, type Request, type Response } from 'express';
import { Role, TaskState, type AgentCard, type Message, type Part } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore, type AgentExecutor, type ExecutionEventBus, type RequestContext } from '@a2a-js/sdk/server';
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';

const longstop = process.env.LONGSTOP?.replace(/\/$/, '');
const agent = process.env.AGENT; // its id, <pubkey>:<alias>: the tokens of other agents are refused

const text = (value: string): Part => ({ content: { $case: 'text', value }, metadata: undefined, filename: '', mediaType: 'text/plain' });
const data = (value: unknown): Part => ({ content: { $case: 'data', value }, metadata: undefined, filename: '', mediaType: 'application/json' });

class Desk implements AgentExecutor {
  async execute({ taskId, contextId, userMessage }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const told = userMessage.parts.map((p) => JSON.stringify(p.content?.value ?? '')).join(' ');
    const order = /\d+/.exec(told)?.[0];
    const says = (parts: Part[]): Message => ({
      messageId: randomUUID(), role: Role.ROLE_AGENT, contextId, taskId, parts, extensions: [], referenceTaskIds: [], metadata: undefined,
    });
    const status = order === undefined
      ? { state: TaskState.TASK_STATE_INPUT_REQUIRED, message: says([text('Which order?')]), timestamp: undefined }
      : { state: TaskState.TASK_STATE_COMPLETED, message: says([text(`Order ${order} was looked up.`), data({ order, late: order === '7' })]), timestamp: undefined };
    bus.publish(AgentEvent.task({ id: taskId, contextId, status, artifacts: [], history: [], metadata: undefined }));
    bus.finished();
  }

  async cancelTask(): Promise<void> {} // it answers at once: there is nothing to cancel
}

/** Lets only requests through whose execution token is good: signed by a key that Longstop publishes, for this agent, for now. */
function verified(audience: () => string) {
  return async (req: Request, res: Response, next: NextFunction): Promise<void> => {
    try {
      const [header = '', payload = '', signature = ''] = (/^Bearer (.+)$/.exec(req.headers.authorization ?? '')?.[1] ?? '').split('.');
      const { alg, kid } = JSON.parse(Buffer.from(header, 'base64url').toString()) as { alg: string; kid: string };
      const keys = (await (await fetch(`${longstop}/.well-known/jwks.json`)).json()) as { keys: (JsonWebKey & { kid: string })[] };
      const key = keys.keys.find((k) => k.kid === kid);
      const good = alg === 'EdDSA' && key !== undefined
        && verify(null, Buffer.from(`${header}.${payload}`), createPublicKey({ key, format: 'jwk' }), Buffer.from(signature, 'base64url'));
      const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { iss: string; aud: string; exp: number; nbf: number; agent: string };
      const now = Date.now() / 1000;
      if (!good || claims.iss !== longstop || claims.aud !== audience() || claims.exp < now - 60 || claims.nbf > now + 60 || !claims.agent.startsWith(`${kid}:`) || (agent && claims.agent !== agent)) {
        throw new Error('not for this agent');
      }
      next();
    } catch {
      res.status(401).set('WWW-Authenticate', 'Bearer').send('the execution token is not good');
    }
  };
}

const app = express();
app.use(express.json({ limit: '4mb' }));
const server = app.listen(Number(process.env.PORT ?? 9011), '127.0.0.1', () => {
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const card: AgentCard = {
    name: 'Order Desk in TypeScript', description: 'Knows which orders are late.', version: '1.0.0',
    supportedInterfaces: [{ url: `${base}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' }],
    capabilities: { streaming: false, pushNotifications: false, extensions: [], extendedAgentCard: false },
    defaultInputModes: ['text/plain'], defaultOutputModes: ['application/json'], skills: [], signatures: [], provider: undefined,
    securitySchemes: longstop ? { execution: { scheme: { $case: 'httpAuthSecurityScheme', value: { scheme: 'bearer', bearerFormat: 'JWT', description: '' } } } } : {},
    securityRequirements: longstop ? [{ schemes: { execution: { list: [] } } }] : [],
  };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Desk());
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }));
  if (longstop) app.use('/rpc', verified(() => base));
  app.use('/rpc', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
  console.log(`the agent serves at ${base}`);
});
