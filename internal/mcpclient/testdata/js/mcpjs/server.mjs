// An MCP server made with the official TypeScript SDK: streamable HTTP with
// sessions, on a free port. Its first line is its URL; it ends with its input.
// POST /forget makes it forget every session.
import { randomUUID } from 'node:crypto';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js';
import express from 'express';
import { z } from 'zod';

function makeServer() {
  const server = new McpServer({ name: 'mcpjs', version: '1.0.0' });
  server.registerTool(
    'diagnose_step_failure',
    {
      description: 'Says what went wrong',
      inputSchema: { error: z.string(), step: z.object({ type: z.string() }).passthrough() },
      outputSchema: { type: z.string(), diagnosis: z.string(), session: z.string() },
    },
    async ({ error, step }, { sessionId }) => {
      const structuredContent = { type: 'retry_with_params', diagnosis: `${step.type}: ${error}`, session: sessionId };
      return { structuredContent, content: [{ type: 'text', text: JSON.stringify(structuredContent) }] };
    },
  );
  server.registerTool('text', {}, async () => ({ content: [{ type: 'text', text: '{"type":"needs_human"}' }] }));
  server.registerTool('throws', {}, async () => {
    throw new Error('boom');
  });
  return server;
}

const sessions = new Map();
const app = express();
app.use(express.json());

app.post('/forget', (_, res) => {
  sessions.clear();
  res.status(204).end();
});

app.post('/mcp', async (req, res) => {
  let transport = sessions.get(req.headers['mcp-session-id']);
  if (!transport && req.headers['mcp-session-id']) {
    res.status(404).json({ jsonrpc: '2.0', error: { code: -32001, message: 'Session not found' }, id: null });
    return;
  }
  if (!transport) {
    if (!isInitializeRequest(req.body)) {
      res.status(400).json({ jsonrpc: '2.0', error: { code: -32000, message: 'Bad Request: no session' }, id: null });
      return;
    }
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
      onsessionclosed: (id) => sessions.delete(id),
    });
    await makeServer().connect(transport);
  }
  await transport.handleRequest(req, res, req.body);
});

app.delete('/mcp', async (req, res) => {
  const transport = sessions.get(req.headers['mcp-session-id']);
  if (!transport) {
    res.status(404).end();
    return;
  }
  await transport.handleRequest(req, res);
});

const listener = app.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${listener.address().port}`));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
