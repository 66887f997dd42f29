// The motivating case of the cookie jar: pods that serve a session only to who carries their own
// affinity cookie, behind a balancer that hands it out. The balancer is a naive proxy here, which
// stamps `Set-Cookie: lb_affinity=<pod>`, or HAProxy with `cookie ... insert` in its place.
import http from 'node:http';
import path from 'node:path';
import readline from 'node:readline';
import { writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { folder } from './gateway.mjs';
import { freePort } from './ports.mjs';
import { start } from './proc.mjs';

export const AFFINITY = 'lb_affinity';
export const LOST = { error: 'Session not found' };

// The pairs of a Cookie header, and how often the affinity cookie is among them.
const cookies = request => (request.headers.cookie ?? '').split(/; */).filter(Boolean);
const affinities = request => cookies(request).filter(pair => pair.startsWith(`${AFFINITY}=`))
  .map(pair => pair.slice(AFFINITY.length + 1));

async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

class Listener {
  async listen() {
    await new Promise(resolve => this.server.listen(0, '127.0.0.1', resolve));
    this.port = this.server.address().port;
    return this;
  }

  stop() {
    this.server.closeAllConnections();
    return new Promise(resolve => this.server.close(resolve));
  }
}

// A stateful replica over Streamable HTTP (/mcp) and old SSE (/sse, /messages), one tool: ping.
class Pod extends Listener {
  sessions = new Map();

  constructor(name) {
    super();
    this.name = name;
    this.server = http.createServer((request, response) =>
      this.#serve(request, response).catch(() => response.destroy()));
  }

  async #serve(request, response) {
    const url = new URL(request.url, 'http://pod');
    const body = await bodyOf(request);
    const message = body.length ? JSON.parse(body) : undefined;
    if (url.pathname === '/sse') return this.#openStream(response);
    if (url.pathname === '/messages') {
      return this.#takeMessage(request, response, url.searchParams.get('id'), message);
    }
    return this.#answer(request, response, message);
  }

  #result({ id, method, params }) {
    const results = {
      initialize: () => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} },
        serverInfo: { name: this.name, version: '1' } }),
      'tools/list': () => ({ tools: [{ name: 'ping', inputSchema: { type: 'object' } }] }),
      'tools/call': () => ({ content: [{ type: 'text', text: this.name }] }),
    };
    return JSON.stringify({ jsonrpc: '2.0', id, result: results[method]?.() ?? {} });
  }

  // A session is served only to who carries this pod's own cookie.
  #isMine(request, id) {
    return this.sessions.has(id) && affinities(request).join() === this.name;
  }

  #json(response, status, body, headers = {}) {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(typeof body === 'string' ? body : JSON.stringify(body));
  }

  #answer(request, response, message) {
    if (message?.method === 'initialize') {
      const id = randomUUID();
      this.sessions.set(id, true);
      return this.#json(response, 200, this.#result(message), { 'mcp-session-id': id });
    }
    const id = request.headers['mcp-session-id'];
    if (!this.#isMine(request, id)) return this.#json(response, 404, LOST);
    if (request.method === 'GET') return response.writeHead(405, { allow: 'POST, DELETE' }).end();
    if (request.method === 'DELETE') {
      this.sessions.delete(id);
      return response.writeHead(204).end();
    }
    if (message.id === undefined) return response.writeHead(202).end();
    return this.#json(response, 200, this.#result(message), { 'mcp-session-id': id });
  }

  #openStream(response) {
    const id = randomUUID();
    this.sessions.set(id, response);
    response.on('close', () => this.sessions.delete(id));
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`event: endpoint\ndata: /messages?id=${id}\n\n`);
  }

  #takeMessage(request, response, id, message) {
    if (!this.#isMine(request, id)) return this.#json(response, 404, LOST);
    response.writeHead(202).end();
    if (message.id !== undefined) {
      this.sessions.get(id).write(`event: message\ndata: ${this.#result(message)}\n\n`);
    }
  }
}

// Round robin, but by the cookie for who has one. `log` has a row for each request: its method, the
// pod it went to, and the affinity cookies that it carried.
//   renews: each answer sets a new value, and only the newest of a pod's values counts
//   attributes: what follows the cookie's value
class Balancer extends Listener {
  log = [];
  #next = 0;
  #turn = 0;
  #newest = new Map();

  constructor(pods, { renews = false, attributes = '; Path=/; HttpOnly' } = {}) {
    super();
    Object.assign(this, { pods, renews, attributes });
    this.server = http.createServer((request, response) =>
      this.#pass(request, response).catch(() => response.destroy()));
  }

  // In the renewing kind the value is "<pod>.<turn>"; the pod sees its bare name.
  #pick(request) {
    const [value = ''] = affinities(request);
    const [name] = value.split('.');
    const pod = this.pods.find(one => one.name === name);
    const isStale = this.renews && value !== this.#newest.get(value.split('.').slice(0, 2).join('.'));
    if (pod && !isStale) return { pod, known: value };
    return { pod: this.pods[this.#next++ % this.pods.length] };
  }

  #stamp({ pod, known }) {
    if (!this.renews) return known ? undefined : `${AFFINITY}=${pod.name}${this.attributes}`;
    const session = known ? known.split('.').slice(0, 2).join('.') : `${pod.name}.${++this.#turn}`;
    const value = `${session}.${++this.#turn}`;
    this.#newest.set(session, value);
    return `${AFFINITY}=${value}${this.attributes}`;
  }

  async #pass(request, response) {
    const body = await bodyOf(request);
    const choice = this.#pick(request);
    this.log.push({ method: request.method, pod: choice.pod.name, cookies: affinities(request),
      rpc: body.length ? JSON.parse(body).method : undefined });
    const headers = { ...request.headers };
    if (this.renews && choice.known) headers.cookie = `${AFFINITY}=${choice.pod.name}`;
    const stamp = this.#stamp(choice);
    const up = http.request({ host: '127.0.0.1', port: choice.pod.port, path: request.url,
      method: request.method, headers, agent: false }, answer => {
      response.writeHead(answer.statusCode,
        { ...answer.headers, ...(stamp && { 'set-cookie': stamp }) });
      response.flushHeaders();
      answer.pipe(response);
    });
    up.on('error', () => response.destroy());
    response.on('close', () => up.destroy());
    up.end(body);
  }

  url(pathname) { return `http://127.0.0.1:${this.port}${pathname}`; }
}

export const pods = (t, names = ['pod-a', 'pod-b']) => Promise.all(names.map(async name => {
  const pod = await new Pod(name).listen();
  t.after(() => pod.stop());
  return pod;
}));

export async function balancer(t, options) {
  const proxy = await new Balancer(await pods(t), options).listen();
  t.after(() => proxy.stop());
  return proxy;
}

// HAProxy in the balancer's place: it inserts its cookie, and leaves it to the pods. `log` has the
// method and the pod of each request, as HAProxy itself wrote it down.
export async function haproxy(t) {
  const port = await freePort();
  const file = path.join(folder(t), 'haproxy.cfg');
  const servers = (await pods(t)).map(pod =>
    `  server ${pod.name} 127.0.0.1:${pod.port} cookie ${pod.name}`);
  writeFileSync(file, ['global', '  log stdout format raw local0', 'defaults', '  mode http',
    '  log global', '  option logasap', '  log-format "to %s by %HM"',
    '  timeout connect 5s', '  timeout client 60s',
    '  timeout server 60s', 'listen sticky', `  bind 127.0.0.1:${port}`, '  balance roundrobin',
    `  cookie ${AFFINITY} insert nocache`, ...servers, ''].join('\n'));
  const proc = start(t, 'haproxy', 'haproxy', ['-f', file, '-db']);
  const log = [];
  readline.createInterface(proc.child.stdout).on('line', line => {
    const [, pod, method] = /^to (pod-\w) by (\w+)$/.exec(line) ?? [];
    if (pod) log.push({ method, pod });
  });
  await proc.listening(port);
  return { port, log, url: pathname => `http://127.0.0.1:${port}${pathname}` };
}
