// What a request through the gateway costs, beside HAProxy learning the session id and beside a
// relay that only copies bytes; and whether an SSE event is held back.
//
// The proxy under test is alone on core 0; load and fake replicas share core 1. The targets run in
// turn, over several rounds, so that a slow spell of the machine hits all of them; ratios are taken
// within a round, and their median is the figure. CPU time is the kernel's account of the proxy's
// process over the measured window, divided by the requests answered in it.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';

const BUILD = path.resolve(import.meta.dirname, '../../build-bench');
const LIMPET = process.env.LIMPET ?? path.join(BUILD, 'limpet');
const PROXY_CORE = '0';
const LOAD_CORE = '1';
const CONNECTIONS = 64;
const SSE_STREAMS = 100;
const SSE_EVENTS_PER_SECOND = 1000;
const AIM_OF_HAPROXY = 1.1;
// What a short run on a busy machine may show before it counts as a mistake.
const SMOKE_LIMIT_OF_HAPROXY = 1.5;
const SMOKE_SSE_LIMIT_US = 20_000;

const { values: options } = parseArgs({ options: {
  rounds: { type: 'string', default: '7' },
  seconds: { type: 'string', default: '4' },
  sessions: { type: 'string', default: '1000' },
  smoke: { type: 'boolean', default: false },
} });
if (options.smoke) Object.assign(options, { rounds: '3', seconds: '1', sessions: '300' });

const running = [];
const scratch = mkdtempSync(path.join(os.tmpdir(), 'limpet-bench-'));
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
  rmSync(scratch, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    }).on('error', reject);
  });
}

function isListening(port) {
  return new Promise(resolve => {
    const socket = net.connect(port, '127.0.0.1')
      .on('connect', () => { socket.destroy(); resolve(true); })
      .on('error', () => resolve(false));
  });
}

// taskset replaces itself by the program, so the child's pid is the program's.
async function start(core, port, command, args) {
  const child = spawn('taskset', ['-c', core, command, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', text => { said = (said + text).slice(-2000); });
  running.push(child);
  for (let tries = 0; !await isListening(port); tries++) {
    if (child.exitCode !== null || tries > 100) {
      throw new Error(`${command} ${args.join(' ')} does not listen on port ${port}: ${said}`);
    }
    await sleep(50);
  }
  return child.pid;
}

async function load(kind, target, extra) {
  const args = ['-c', LOAD_CORE, path.join(BUILD, 'test/bench/bench_load'), kind,
    '-p', target.port, '-P', target.pid, '-d', options.seconds, ...extra].map(String);
  return new Promise((resolve, reject) => {
    const child = spawn('taskset', args, { stdio: ['ignore', 'pipe', 'inherit'] });
    running.push(child);
    let out = '';
    child.stdout.on('data', text => { out += text; });
    child.on('close', code => code === 0 ? resolve(JSON.parse(out)) :
      reject(new Error(`the load on ${target.name} ended with ${code}`)));
  });
}

function haproxyConfig(port, replicas) {
  return ['global', '  maxconn 9000', '  nbthread 1',
    'defaults', '  mode http', '  option http-keep-alive',
    '  timeout connect 2s', '  timeout client 1h', '  timeout server 1h',
    'frontend clients', `  bind 127.0.0.1:${port}`, '  default_backend replicas',
    'backend replicas', '  balance roundrobin',
    '  stick-table type string len 128 size 200k expire 1h',
    '  stick match req.hdr(mcp-session-id)', '  stick store-response res.hdr(mcp-session-id)',
    ...replicas.map((replica, i) => `  server r${i} 127.0.0.1:${replica}`), ''].join('\n');
}

const starters = {
  relay: (port, replicas) => start(PROXY_CORE, port, path.join(BUILD, 'test/bench/bench_relay'),
    [String(port), String(replicas[0])]),
  haproxy: (port, replicas) => {
    const file = path.join(scratch, `haproxy-${port}.cfg`);
    writeFileSync(file, haproxyConfig(port, replicas));
    return start(PROXY_CORE, port, 'haproxy', ['-f', file, '-db']);
  },
  limpet: (port, replicas) => start(PROXY_CORE, port, LIMPET, ['gateway', '--threads', '1',
    '--listen', `127.0.0.1:${port}`, '--admin', 'off', '--key-file', path.join(scratch, 'key'),
    ...replicas.map(replica => `http://127.0.0.1:${replica}/mcp`)]),
};

async function startTarget(name, replicas) {
  const port = await freePort();
  return { name, port, pid: await starters[name](port, replicas) };
}

async function startReplicas(count, events) {
  const ports = [];
  for (let i = 0; i < count; i++) {
    const port = await freePort();
    await start(LOAD_CORE, port, path.join(BUILD, 'test/bench/bench_replica'),
      [port, ...events ? [events] : []].map(String));
    ports.push(port);
  }
  return ports;
}

const median = numbers => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

async function rounds(kind, targets, extra) {
  const results = Object.fromEntries(targets.map(target => [target.name, []]));
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const target of targets) results[target.name].push(await load(kind, target, extra));
  }
  return results;
}

// The median over rounds of a figure, and of its ratio to another target's in the same round.
const middle = (runs, key) => median(runs.map(run => run[key]));
const ratio = (runs, others, key) => median(runs.map((run, i) => run[key] / others[i][key]));

function table(heads, rows) {
  const widths = heads.map((head, i) => Math.max(head.length, ...rows.map(row => row[i].length)));
  for (const row of [heads, ...rows]) {
    console.log(row.map((cell, i) => i ? cell.padStart(widths[i]) : cell.padEnd(widths[i])).join('  '));
  }
}

function tellRequests(results) {
  console.log(`\nPOST, ~150 bytes there, ~300 back; ${CONNECTIONS} keep-alive connections, ` +
    `${options.sessions} sessions, 3 replicas; ${options.rounds} rounds of ${options.seconds} s`);
  table(['', 'CPU us/request', 'x relay', 'x haproxy', 'requests/s', 'p50 us', 'p99 us', 'errors'],
    Object.entries(results).map(([name, runs]) => [name,
      middle(runs, 'cpu_us').toFixed(2), ratio(runs, results.relay, 'cpu_us').toFixed(2),
      ratio(runs, results.haproxy, 'cpu_us').toFixed(2), middle(runs, 'per_second').toFixed(0),
      middle(runs, 'p50_us').toFixed(0), middle(runs, 'p99_us').toFixed(0), String(errors(runs))]));
  const figure = ratio(results.limpet, results.haproxy, 'cpu_us');
  console.log(`limpet costs ${figure.toFixed(2)} x HAProxy; the aim is no more than ` +
    `${AIM_OF_HAPROXY}: ${figure <= AIM_OF_HAPROXY ? 'reached' : 'NOT reached'}. ` +
    'The relay knows no sessions: it is the floor of two sockets.');
  console.log('p50 and p99 are times in a closed loop that keeps a core busy: mostly waiting in line.');
  return figure;
}

function tellEvents(results) {
  console.log(`\nSSE, ${SSE_STREAMS} streams, ${SSE_EVENTS_PER_SECOND} events/s in all: ` +
    'from the write in the replica to the read in the client');
  table(['', 'p50 us', 'x relay', 'p99 us', 'x relay', 'CPU us/event', 'events', 'errors'],
    Object.entries(results).map(([name, runs]) => [name,
      middle(runs, 'p50_us').toFixed(0), ratio(runs, results.relay, 'p50_us').toFixed(2),
      middle(runs, 'p99_us').toFixed(0), ratio(runs, results.relay, 'p99_us').toFixed(2),
      middle(runs, 'cpu_us').toFixed(2), String(runs.reduce((n, run) => n + run.count, 0)),
      String(errors(runs))]));
  console.log('An event that is held back shows as tens of thousands of us.');
}

const errors = runs => runs.reduce((n, run) => n + run.errors, 0);

function complaints(requests, events, figure) {
  const wrong = [];
  for (const [name, runs] of [...Object.entries(requests), ...Object.entries(events)]) {
    if (errors(runs)) wrong.push(`${name} had ${errors(runs)} errors`);
    if (runs.some(run => run.count === 0)) wrong.push(`${name} answered nothing in some round`);
  }
  if (options.smoke && figure > SMOKE_LIMIT_OF_HAPROXY) {
    wrong.push(`${figure.toFixed(2)} x HAProxy is over ${SMOKE_LIMIT_OF_HAPROXY}`);
  }
  if (options.smoke && middle(events.limpet, 'p50_us') > SMOKE_SSE_LIMIT_US) {
    wrong.push('limpet holds SSE events back');
  }
  return wrong;
}

async function main() {
  if (os.availableParallelism() < 2) throw new Error('The benchmark needs 2 cores.');
  console.log(execFileSync('haproxy', ['-v'], { encoding: 'utf8' }).split('\n')[0]);
  const replicas = await startReplicas(3);
  const targets = [];
  for (const name of ['relay', 'haproxy', 'limpet']) targets.push(await startTarget(name, replicas));
  const requests = await rounds('post', targets, ['-c', CONNECTIONS, '-s', options.sessions]);
  const figure = tellRequests(requests);

  const source = await startReplicas(1, SSE_EVENTS_PER_SECOND);
  const streams = [];
  for (const name of ['relay', 'limpet']) streams.push(await startTarget(name, source));
  const events = await rounds('sse', streams, ['-c', SSE_STREAMS, '-s', SSE_STREAMS]);
  tellEvents(events);

  const wrong = complaints(requests, events, figure);
  for (const line of wrong) console.error(line);
  process.exit(wrong.length ? 1 : 0);
}

main().catch(error => { console.error(error.message); process.exit(1); });
