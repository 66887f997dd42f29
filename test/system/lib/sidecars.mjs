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

// `within`: milliseconds until the answer's head must be there; 0: no limit.
function ask({ host = '127.0.0.1', port }, request, headers, within = 0) {
  return new Promise((resolve, reject) => {
    const upstream = http.request({ host, port, method: request.method, path: request.url, headers,
      agent: false });
    const timer = within && setTimeout(() => upstream.destroy(new Error('too late')), within);
    upstream.once('response', answer => { clearTimeout(timer); resolve(answer); });
    upstream.once('error', error => { clearTimeout(timer); reject(error); });
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
    relay(await ask(any(targets), request, request.headers), response, () => request.cut());
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

// fly.io's proxy as far as replay goes. Each request goes to a random machine. An answer with
// `fly-replay` is not shown; the request is sent again, once, to the instance it names, with
// `fly-replay-src`. Nothing over 1,000,000 bytes is sent again. Where a preferred instance is not
// there, or its answer does not begin within `timeout`, any other machine gets the request, with
// `fly-replay-failed`; a strict one makes a 502. A second replay is refused.
//
// A machine is { self, port }, `isDown` while the platform knows it to be, and `isOnlyNamed` where
// nothing is sent but what a replay names it for. `log` has what was
// replayed, `answers` the heads that clients got; `second` is how long a second takes here.
export async function fly(t, machines, { second = 1000 } = {}) {
  const log = [];
  const answers = [];
  const up = machine => !machine.isDown;
  const mayServe = machine => up(machine) && !machine.isOnlyNamed;
  const byId = id => machines.find(machine => machine.self === id && up(machine));
  function show(answer, request, response) {
    answers.push({ status: answer.statusCode, headers: answer.headers });
    relay(answer, response, () => request.cut());
  }
  function refuse(response, why) { response.writeHead(502).end(why); }
  async function fallBack(request, entry, headers) {
    const other = any(machines.filter(machine => machine.self !== entry.id && mayServe(machine)));
    entry.to = other.self;
    entry.isFallback = true;
    return ask(other, request, { ...headers, 'fly-replay-failed': `instance=${entry.id}` });
  }
  async function sendAgain(request, entry, headers) {
    const target = byId(entry.id);
    if (!target && !entry.isStrict) return fallBack(request, entry, headers);
    if (!target) throw new Error('no such instance');
    try {
      const answer = await ask(target, request, headers, entry.timeout * second);
      entry.to = target.self;
      return answer;
    } catch (error) {
      if (entry.isStrict) throw error;
      return fallBack(request, entry, headers);
    }
  }
  async function replay(request, response, from, value) {
    const entry = { from, method: request.method, ...parseReplay(value) };
    log.push(entry);
    const answer = await sendAgain(request, entry,
      { ...request.headers, 'fly-replay-src': `instance=${from};region=x;t=${Date.now()}` });
    entry.isLoop = answer.headers['fly-replay'] !== undefined;
    if (!entry.isLoop) { show(answer, request, response); return; }
    answer.resume();
    refuse(response, 'replayed twice');
  }
  const front = await listen(t, async (request, response) => {
    const length = Number(request.headers['content-length'] ?? 0);
    const isLong = length > REPLAY_BODY_MAX || request.headers['transfer-encoding'];
    if (!isLong) request.body = await whole(request);
    const machine = any(machines.filter(mayServe));
    const answer = await ask(machine, request, request.headers);
    const value = answer.headers['fly-replay'];
    if (value === undefined) { show(answer, request, response); return; }
    answer.resume();
    if (!isLong) { await replay(request, response, machine.self, value); return; }
    log.push({ from: machine.self, isTooLong: true });
    refuse(response, 'too long to be replayed');
  });
  return { ...front, log, answers };
}
