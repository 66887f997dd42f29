// A replica that keeps its sessions in process memory and passes every server scenario of the
// conformance package, made of the v1 SDK and node:http.
//   PORT   port on 127.0.0.1            NAME   what the tool `whoami` says (default rPORT)
//   LOST   404 | 400: the answer to an unknown session id        JSON=1   answers as JSON, not SSE
//   MODERN=1   requests of 2026-07-28 are answered on the same path by the v2 SDK
// GET /seen tells what reached it: [{ http, rpc, session, version }].
import http from 'node:http';
import { randomUUID } from 'node:crypto';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js';
import { CAPABILITIES, offer } from './conf-tools.mjs';

const { PORT = '3001', NAME = `r${PORT}`, LOST = '404', JSON: ONLY_JSON, MODERN } = process.env;
const SEEN_MAX = 20_000;
const sessions = new Map();
const seen = [];
const modernHandler = MODERN ? (await import('./modern.mjs')).modernHandler(NAME) : undefined;

class EventStore {
  #events = [];

  async storeEvent(stream, message) {
    const id = `${stream}_${this.#events.length}`;
    this.#events.push({ id, stream, message });
    return id;
  }

  async replayEventsAfter(lastId, { send }) {
    const at = this.#events.findIndex(event => event.id === lastId);
    if (at < 0) return lastId;
    const { stream } = this.#events[at];
    for (const event of this.#events.slice(at + 1)) {
      const isPriming = !event.message || Object.keys(event.message).length === 0;
      if (event.stream === stream && !isPriming) await send(event.id, event.message);
    }
    return stream;
  }
}

function fail(response, status, code, message) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code, message }, id: null }));
}

const isLocal = value =>
  !value || /^(https?:\/\/)?(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(value);

async function readBody(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

async function newSession() {
  const server = new Server({ name: 'conformance-replica', version: '1' },
    { capabilities: CAPABILITIES });
  const session = { server, replica: NAME, count: 0 };
  session.transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: Boolean(ONLY_JSON),
    eventStore: ONLY_JSON ? undefined : new EventStore(),
    retryInterval: 500,
    onsessioninitialized: id => sessions.set(id, session),
  });
  session.transport.onclose = () => sessions.delete(session.transport.sessionId);
  offer(server, session);
  await server.connect(session.transport);
  return session;
}

async function serve(request, response) {
  const { pathname } = new URL(request.url, 'http://x');
  if (pathname === '/seen') return response.end(JSON.stringify(seen));
  if (!isLocal(request.headers.host) || !isLocal(request.headers.origin)) {
    return fail(response, 403, -32000, 'Forbidden host or origin');
  }
  if (pathname !== '/mcp') return response.writeHead(404).end();
  let body;
  if (request.method === 'POST') {
    try {
      body = await readBody(request);
    } catch {
      return fail(response, 400, -32700, 'Parse error');
    }
  }
  const id = request.headers['mcp-session-id'];
  const version = request.headers['mcp-protocol-version'];
  if (seen.length < SEEN_MAX) {
    seen.push({ http: request.method, rpc: body?.method, session: id, version });
  }
  if (modernHandler && version === '2026-07-28') return modernHandler(request, response, body);
  const isOpening = body !== undefined && isInitializeRequest(body) && !id;
  const session = isOpening ? await newSession() : sessions.get(id);
  if (session) return session.transport.handleRequest(request, response, body);
  if (!id) return fail(response, 400, -32000, 'Bad Request: no session id');
  return LOST === '404'
    ? fail(response, 404, -32001, 'Session not found')
    : fail(response, 400, -32000, 'Bad Request: No valid session ID provided');
}

http.createServer(serve).listen(Number(PORT), '127.0.0.1');
