// A small stateful replica inside the test's own process: private sessions, JSON answers, every
// request kept as it came. For tests that need many replicas, or must see what reached them.
import http from 'node:http';
import { randomUUID } from 'node:crypto';

const fail = (id, code, message) => ({ jsonrpc: '2.0', error: { code, message }, id });

class Tiny {
  sessions = new Map();
  requests = [];
  initializes = 0;

  // lost: status for an unknown session; mintsIds: false plays a server without sessions;
  // idOf: makes the session id; headers: on every initialize answer; subjects: a Map of good tokens and
  // whose they are, and a session is its opener's then.
  constructor(name, { lost = 404, mintsIds = true, idOf = randomUUID, headers = {}, subjects } = {}) {
    Object.assign(this, { name, lost, mintsIds, idOf, headers, subjects });
    this.server = http.createServer((request, response) => this.#serve(request, response));
  }

  async listen(port = 0) {
    await new Promise((resolve, reject) =>
      this.server.once('error', reject).listen(port, '127.0.0.1', resolve));
    this.port = this.server.address().port;
    this.url = `http://127.0.0.1:${this.port}/mcp`;
    return this;
  }

  async stop() {
    this.server.closeAllConnections();
    await new Promise(resolve => this.server.close(resolve));
  }

  async #serve(request, response) {
    const chunks = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch { return; }
    const bytes = Buffer.concat(chunks);
    const seen = { method: request.method, url: request.url, headers: request.headers,
      raw: request.rawHeaders, bytes };
    this.requests.push(seen);
    try { seen.json = JSON.parse(bytes.toString().replace(/^\uFEFF/, '')); } catch { /* kept as bytes */ }
    const [status, headers, body] = this.#answer(seen);
    response.writeHead(status, headers).end(body);
  }

  #answer({ method, headers, json }) {
    const id = headers['mcp-session-id'];
    const subject = this.subjects?.get(headers.authorization?.replace(/^Bearer /, ''));
    if (this.subjects && !subject) return [401, { 'www-authenticate': 'Bearer realm="tiny"' }, ''];
    if (json?.method === 'initialize' && id === undefined) return this.#open(json, subject);
    const session = this.sessions.get(id);
    if (this.mintsIds && (!session || session.subject !== subject)) return this.#refuse(id, json);
    if (method === 'DELETE') { this.sessions.delete(id); return [200, {}, '']; }
    if (method === 'GET') return [405, { allow: 'POST, DELETE' }, ''];
    if (json?.id === undefined || json.method === undefined) return [202, {}, ''];
    return this.#json(200, { jsonrpc: '2.0', id: json.id, result: this.#run(json, session) },
      session && { 'mcp-session-id': id });
  }

  #open(json, subject) {
    this.initializes++;
    const id = this.idOf();
    this.sessions.set(id, { count: 0, subject });
    return this.#json(200, { jsonrpc: '2.0', id: json.id, result: {
      protocolVersion: json.params.protocolVersion, capabilities: { tools: {} },
      serverInfo: { name: this.name, version: '1' } } },
    { ...(this.mintsIds && { 'mcp-session-id': id }), ...this.headers });
  }

  #refuse(id, json) {
    const to = json?.id ?? null;
    if (id === undefined) return this.#json(400, fail(to, -32000, 'Bad Request: no session id'));
    return this.lost === 404
      ? this.#json(404, fail(null, -32001, 'Session not found'))
      : this.#json(400, fail(null, -32000, 'Bad Request: No valid session ID provided'));
  }

  #run({ method, params }, session) {
    if (method === 'tools/list') return { tools: [{ name: 'whoami', inputSchema: { type: 'object' } }] };
    if (method !== 'tools/call') return {};
    if (session) session.count++;
    return { content: [{ type: 'text', text: params.name === 'count'
      ? `${this.name} ${session?.count}` : this.name }] };
  }

  #json(status, body, headers = {}) {
    return [status, { 'content-type': 'application/json', ...headers }, JSON.stringify(body)];
  }
}

export async function tiny(t, name = 'tiny', { port, ...options } = {}) {
  const replica = await new Tiny(name, options).listen(port);
  t.after(() => replica.stop());
  return replica;
}

export const tinies = (t, count, options) =>
  Promise.all(Array.from({ length: count }, (_, i) => tiny(t, `r${i + 1}`, options)));
