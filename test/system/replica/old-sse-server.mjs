// A replica of the 2024-11-05 transport on the v1 SDK's SSEServerTransport. Tools: those of
// conf-tools.mjs that need no Streamable HTTP.
//   PORT, NAME   as in conf-server.mjs
//   ENDPOINT     what the endpoint event says; {id} is the session id and {port} the port
//                (default "/messages?sessionId={id}")
//   TWICE=1      a second endpoint event, "/elsewhere?sessionId={id}", follows the first
//   UNKNOWN      404 | hang: what a POST for an unknown id gets (404)
// Streams open on any path that ends in /sse, POSTs are taken on every other path and on /sse itself.
// GET /seen tells what reached it: [{ http, url }].
import http from 'node:http';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { CAPABILITIES, offer } from './conf-tools.mjs';

const { PORT = '3001', NAME = `r${PORT}`, ENDPOINT = '/messages?sessionId={id}', TWICE,
  UNKNOWN = '404' } = process.env;
const sessions = new Map();
const seen = [];

// The SDK's transport announces only paths of its own making: the event is replaced on its way out.
function announce(response, id) {
  const endpoint = ENDPOINT.replaceAll('{id}', id).replaceAll('{port}', PORT);
  const second = TWICE ? `event: endpoint\ndata: /elsewhere?sessionId=${id}\n\n` : '';
  const write = response.write.bind(response);
  response.write = chunk => {
    response.write = write;
    return write(`event: endpoint\ndata: ${endpoint}\n\n${second}`);
  };
}

async function openStream(response) {
  const server = new Server({ name: 'old-sse-replica', version: '1' },
    { capabilities: CAPABILITIES });
  const transport = new SSEServerTransport('/messages', response);
  const session = { server, transport, replica: NAME, count: 0 };
  sessions.set(transport.sessionId, session);
  server.onclose = () => sessions.delete(transport.sessionId);
  offer(server, session);
  announce(response, transport.sessionId);
  await server.connect(transport);
}

http.createServer(async (request, response) => {
  const url = new URL(request.url, 'http://x');
  if (url.pathname === '/seen') return response.end(JSON.stringify(seen));
  seen.push({ http: request.method, url: request.url });
  if (request.method === 'GET') {
    if (url.pathname.endsWith('/sse')) return openStream(response);
    return response.writeHead(404).end();
  }
  const session = sessions.get(url.searchParams.get('sessionId'));
  if (session) return session.transport.handlePostMessage(request, response);
  if (UNKNOWN === '404') response.writeHead(404).end('Could not find session');
  return undefined;
}).listen(Number(PORT), '127.0.0.1');
