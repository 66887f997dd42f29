// The part of a replica that speaks 2026-07-28: no sessions, any replica will do (v2 SDK).
//   PORT, NAME as in conf-server.mjs when run alone; tools: whoami, échø (a name outside ASCII),
//   and shop (its argument `sku` is mirrored in the header Mcp-Param-Sku).
// GET /seen tells what reached it, headers included.
import http from 'node:http';
import { createMcpHandler, Server } from '@modelcontextprotocol/server';
import { toNodeHandler } from '@modelcontextprotocol/node';

const TOOLS = [
  { name: 'whoami', inputSchema: { type: 'object', properties: {} } },
  { name: 'échø', inputSchema: { type: 'object', properties: {} } },
  { name: 'shop', inputSchema: { type: 'object',
    properties: { sku: { type: 'string', 'x-mcp-header': 'Sku' } } } },
];

export function modernHandler(name) {
  return toNodeHandler(createMcpHandler(() => {
    const server = new Server({ name, version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler('tools/list', () => ({ tools: TOOLS }));
    server.setRequestHandler('tools/call', () => ({ content: [{ type: 'text', text: name }] }));
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
