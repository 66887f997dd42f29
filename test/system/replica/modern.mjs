// The part of a replica that speaks 2026-07-28: no sessions, any replica will do (v2 SDK).
//   PORT, NAME as in conf-server.mjs when run alone; tools: whoami, échø (a name outside ASCII),
//   shop (its argument `sku` is mirrored in the header Mcp-Param-Sku), and confirm, which asks first:
//   its state is sealed with STATE_KEY, or a key of this process.
// GET /seen tells what reached it, headers included.
import http from 'node:http';
import { randomBytes } from 'node:crypto';
import { createMcpHandler, createRequestStateCodec, inputRequired, Server } from
  '@modelcontextprotocol/server';
import { toNodeHandler } from '@modelcontextprotocol/node';

const TOOLS = [
  { name: 'whoami', inputSchema: { type: 'object', properties: {} } },
  { name: 'échø', inputSchema: { type: 'object', properties: {} } },
  { name: 'shop', inputSchema: { type: 'object',
    properties: { sku: { type: 'string', 'x-mcp-header': 'Sku' } } } },
  { name: 'confirm', inputSchema: { type: 'object', properties: {} } },
];

async function confirm(codec, { mcpReq }) {
  if (mcpReq.requestState() !== undefined) return { content: [{ type: 'text', text: 'done' }] };
  return inputRequired({ requestState: await codec.mint({ step: 1 }), inputRequests: {
    sure: inputRequired.elicit({ message: 'Sure?',
      requestedSchema: { type: 'object', properties: { yes: { type: 'boolean' } } } }) } });
}

export function modernHandler(name) {
  const codec = createRequestStateCodec({ key: process.env.STATE_KEY ?? randomBytes(32) });
  return toNodeHandler(createMcpHandler(() => {
    const server = new Server({ name, version: '1' }, { capabilities: { tools: {} },
      requestState: { verify: codec.verify } });
    server.setRequestHandler('tools/list', () => ({ tools: TOOLS }));
    server.setRequestHandler('tools/call', ({ params }, ctx) => (params.name === 'confirm'
      ? confirm(codec, ctx) : { content: [{ type: 'text', text: name }] }));
    return server;
  }));
}

if (process.argv[1] === import.meta.filename) {
  const { PORT = '3001', NAME = `r${PORT}` } = process.env;
  const handle = modernHandler(NAME);
  const seen = [];
  http.createServer((request, response) => {
    if (request.url === '/seen') return response.end(JSON.stringify(seen));
    seen.push({ http: request.method, headers: request.headers });
    return handle(request, response);
  }).listen(Number(PORT), '127.0.0.1');
}
