// Sidecars, one beside each replica, and the balancers in front that nobody can replace: a random
// choice for each request, and a small one that keeps the replay contract of fly.io.
import http from 'node:http';
import { freePort, freePorts } from './ports.mjs';
import { LIMPET, start } from './proc.mjs';
import { keyFile, newKey } from './gateway.mjs';

const NO_ENV = { FLY_MACHINE_ID: '', HOSTNAME: '' };
const REPLAY_BODY_MAX = 1_000_000;

// `host` is where it listens, `wrap` a command in front of its own.
class Sidecar {
  constructor(t, settings) {
    this.host = '127.0.0.1';
    this.wrap = [];
    Object.assign(this, settings);
    this.t = t;
  }

  get args() {
    return ['sidecar', ...(this.self ? ['--self', this.self] : []), '--local', this.local,
      '--listen', `${this.host}:${this.port}`, '--admin', this.admin ?? 'off', '--key-file', this.key,
      '--access-log', '--log-format', 'json', ...this.peers.flatMap(peer => ['--peer', peer]),
      ...this.flags];
  }

  at(pathname) { return `http://${this.host}:${this.port}${pathname}`; }
  get url() { return this.at('/mcp'); }

  async start() {
    const [command, ...args] = [...this.wrap, LIMPET, ...this.args];
    this.proc = start(this.t, `sidecar ${this.self ?? ''}`, command, args,
      { env: { ...NO_ENV, ...this.env } });
    await this.proc.says(/listening on http:/, 15_000);
    return this;
  }

  get records() {
    return this.proc.log.split('\n').filter(line => line.startsWith('{'))
      .map(line => JSON.parse(line)).filter(record => record.reason !== undefined);
  }
}

// One sidecar for each of the URLs `locals`, m1 to mN. With `knows` each gets the whole list of
// peers, its own entry too.
export async function sidecars(t, locals, { knows = true, flags = [], env, key } = {}) {
  const ports = await freePorts(locals.length);
  const shared = key ?? keyFile(t, newKey());
  const peers = knows ? ports.map((port, i) => `m${i + 1}=http://127.0.0.1:${port}`) : [];
  return Promise.all(locals.map((local, i) => new Sidecar(t,
    { self: `m${i + 1}`, local, port: ports[i], peers, flags, env, key: shared }).start()));
}

export async function sidecar(t, { peers = [], flags = [], key, port, ...rest } = {}) {
  return new Sidecar(t, { ...rest, peers, flags, key: key ?? keyFile(t, newKey()),
    port: port ?? await freePort() }).start();
}

// `limpet replica`, `count` times.
export async function limpetReplicas(t, count) {
  const ports = await freePorts(count);
  await Promise.all(ports.map((port, i) => start(t, `replica R${i + 1}`, LIMPET,
    ['replica', '--listen', `127.0.0.1:${port}`, '--name', `R${i + 1}`]).listening(port)));
  return ports.map(port => `http://127.0.0.1:${port}/mcp`);
}

// --- balancers ---

function ask(port, request, headers) {
  return new Promise((resolve, reject) => {
    const upstream = http.request({ host: '127.0.0.1', port, method: request.method,
      path: request.url, headers, agent: false }, resolve);
    upstream.once('error', reject);
    if (request.body) upstream.end(request.body);
    else request.pipe(upstream);
    request.cut = () => upstream.destroy();
  });
}

function relay(answer, response, cut) {
  response.writeHead(answer.statusCode, answer.headers);
  response.flushHeaders();
  answer.pipe(response);
  response.once('close', () => { answer.destroy(); cut(); });
  answer.once('error', () => response.destroy());
}

async function listen(t, onRequest) {
  const server = http.createServer((request, response) => {
    onRequest(request, response).catch(error => {
      if (!response.headersSent) response.writeHead(502).end(`balancer: ${error.message}`);
      else response.destroy();
    });
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  t.after(() => { server.closeAllConnections(); server.close(); });
  const { port } = server.address();
  return { port, url: `http://127.0.0.1:${port}/mcp`,
    at: pathname => `http://127.0.0.1:${port}${pathname}` };
}

const any = list => list[Math.floor(Math.random() * list.length)];

// Any target for any request, each on a connection of its own.
export function randomChoice(t, targets) {
  return listen(t, async (request, response) => {
    relay(await ask(any(targets).port, request, request.headers), response, () => request.cut());
  });
}

async function whole(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function parseReplay(value) {
  const fields = Object.fromEntries(value.split(';').map(field => field.trim().split('=')));
  return { id: fields.instance ?? fields.prefer_instance, isStrict: 'instance' in fields,
    timeout: Number.parseInt(fields.timeout ?? '0', 10) };
}

// fly.io's proxy as far as replay goes: a random machine; an answer with `fly-replay` is not shown
// but the request sent again, once, to the instance it names, with `fly-replay-src`. Nothing over
// 1,000,000 bytes is sent again. `prefer_instance` falls back to any other machine, which is told
// by `fly-replay-failed`. `log` has what was replayed; `extra(request)` adds headers.
export async function fly(t, machines, { extra = () => ({}) } = {}) {
  const log = [];
  const byId = id => machines.find(machine => machine.self === id && !machine.isDown);
  async function again(request, response, from, value) {
    const { id, isStrict, timeout } = parseReplay(value);
    const entry = { from, id, isStrict, timeout, method: request.method };
    log.push(entry);
    const to = byId(id);
    if (!to && isStrict) { response.writeHead(502).end('no such instance'); return; }
    const target = to ?? any(machines.filter(machine => machine.self !== from && !machine.isDown));
    const headers = { ...request.headers, 'fly-replay-src': `instance=${from};region=x;t=1` };
    if (!to) headers['fly-replay-failed'] = 'instance-unavailable';
    const answer = await ask(target.port, request, headers);
    entry.to = target.self;
    if (answer.headers['fly-replay']) {
      entry.isLoop = true;
      answer.resume();
      response.writeHead(502).end('replayed twice');
      return;
    }
    relay(answer, response, () => request.cut());
  }
  const front = await listen(t, async (request, response) => {
    const length = Number(request.headers['content-length'] ?? 0);
    const isLong = length > REPLAY_BODY_MAX || request.headers['transfer-encoding'];
    if (!isLong) request.body = await whole(request);
    const machine = any(machines.filter(one => !one.isDown));
    const headers = { ...request.headers, ...extra(request) };
    const answer = await ask(machine.port, request, headers);
    const value = answer.headers['fly-replay'];
    if (value === undefined) { relay(answer, response, () => request.cut()); return; }
    answer.resume();
    if (isLong) { log.push({ isTooLong: true }); response.writeHead(502).end('too long'); return; }
    await again(request, response, machine.self, value);
  });
  return { ...front, log };
}
