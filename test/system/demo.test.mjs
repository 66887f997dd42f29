// `limpet demo`: what it shows, that it tells the truth, and that nothing of it is left behind.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { folder } from './lib/gateway.mjs';
import { send } from './lib/http.mjs';
import { LIMPET, run, start } from './lib/proc.mjs';
import { initialize, post, Session } from './lib/rpc.mjs';

// Processes whose parent is `pid`, in the order of their start: [{ pid, words }].
function childrenOf(pid) {
  const pids = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  return pids.map(Number).map(child => (
    { pid: child, words: readFileSync(`/proc/${child}/cmdline`, 'utf8').split('\0') }));
}

const isRunning = pid => {
  try { process.kill(pid, 0); return true; } catch { return false; }
};

async function gone(pids, within = 5000) {
  const end = performance.now() + within;
  while (pids.some(isRunning) && performance.now() < end) await sleep(20);
  assert.deepEqual(pids.filter(isRunning), [], 'processes were left behind');
}

function killReplicas(children) {
  const replicas = children.filter(child => child.words.includes('replica'));
  for (const { pid } of replicas) process.kill(pid, 'SIGKILL');
}

async function running(t) {
  const tmp = folder(t);
  let proc;
  t.after(() => proc?.stop('SIGINT', 10_000));
  proc = start(t, 'limpet demo', LIMPET, ['demo'], { env: { TMPDIR: tmp } });
  const [, gateway, robin] =
    await proc.says(/Gateway (http:\S+)\s+round robin (http:\S+)\n/, 20_000);
  return { proc, tmp, gateway, robin, children: childrenOf(proc.pid) };
}

// A demo whose client waits for replica C, which is stopped.
async function held(t) {
  const proc = start(t, 'limpet demo', LIMPET, ['demo', '--once']);
  let children = [];
  while (children.length < 4) { // all three listen when the gateway is started
    await new Promise(setImmediate);
    children = childrenOf(proc.pid);
  }
  process.kill(children[2].pid, 'SIGSTOP');
  t.after(() => { try { process.kill(children[2].pid, 'SIGKILL'); } catch { /* gone */ } });
  await proc.says(/A, B and C/, 20_000);
  return { proc, children };
}

suite('limpet demo --once', () => {
  test('two rows, the numbers that belong to them, status 0, nothing left', async t => {
    const tmp = folder(t);
    const { code, stdout, stderr } = await run(LIMPET, ['demo', '--once'],
      { within: 30_000, env: { TMPDIR: tmp } });
    assert.equal(code, 0, stdout + stderr);
    assert.equal(stderr, '');
    const lines = stdout.split('\n');
    const rows = [...stdout.matchAll(/went to +(\S+)\n +answer +(\S+) +(\d+) of 12\n/g)];
    assert.equal(rows.length, 2, stdout);
    const [[, robins, lost, few], [, owners, held, all]] = rows;
    assert.equal(robins, 'ABCABCABCABC');
    assert.match(lost, /^Oxx/);
    assert.equal(few, String(lost.replaceAll('x', '').length));
    assert.equal(held, 'O'.repeat(12));
    assert.equal(all, '12');
    assert.match(owners, /^(A{12}|B{12}|C{12})$/);
    assert.ok(lines.every(line => line.length <= 80));
    assert.ok(lines.length <= 25, `${lines.length} lines`);
    assert.doesNotMatch(stdout, /\x1b/, 'no colours in a pipe');
    assert.match(stdout, /limpet gateway http:/);
    assert.deepEqual(readdirSync(tmp), []);
  });

  test('colours on a terminal, none with NO_COLOR or on a dumb one', async () => {
    const terminal = env => run('script', ['-qec', `${LIMPET} demo --once`, '/dev/null'],
      { within: 30_000, env: { TERM: 'xterm', NO_COLOR: '', ...env } });
    assert.match((await terminal({})).stdout, /\x1b\[1;32mO\x1b\[0m/);
    assert.doesNotMatch((await terminal({ NO_COLOR: '1' })).stdout, /\x1b/);
    assert.doesNotMatch((await terminal({ TERM: 'dumb' })).stdout, /\x1b/);
  });

  test('a replica that dies on the way: the rows are not as they should be, status 1', async t => {
    const proc = start(t, 'limpet demo', LIMPET, ['demo', '--once']);
    let children = [];
    while (children.length < 2) { // the first one listens when there is a second
      await new Promise(setImmediate);
      children = childrenOf(proc.pid);
    }
    process.kill(children[0].pid, 'SIGKILL');
    const { code } = await Promise.race([proc.ended, sleep(30_000, {}, { ref: false })]);
    assert.equal(code, 1, proc.log);
    assert.match(proc.stderr, /limpet: the round robin was expected to answer some calls/);
    assert.match(proc.stdout, /answer +x{12} +0 of 12\n/);
    assert.match(proc.stdout, /answer +O{12} +12 of 12\n/, 'the gateway does without it');
  });

  test('a gateway that dies on the way: status 1, its log is shown', async t => {
    const { proc, children } = await held(t);
    const [, , last, { pid: proxy }] = children;
    process.kill(proxy, 'SIGSTOP'); // it still accepts, but does not answer
    process.kill(last.pid, 'SIGCONT');
    await proc.says(/answer +O/, 10_000);
    process.kill(proxy, 'SIGKILL');
    const { code } = await Promise.race([proc.ended, sleep(30_000, {}, { ref: false })]);
    assert.equal(code, 1, proc.log);
    assert.match(proc.stderr, /limpet: the gateway was expected to answer every call/);
    assert.match(proc.stdout, /answer +O*x+ +\d+ of 12\n/);
  });

  test('a gateway that does not start: its words, then a sentence, status 1', async t => {
    const tmp = path.join(folder(t), 'a\x01b'); // the gateway takes no such path for its key file
    mkdirSync(tmp);
    const { code, stderr } = await run(LIMPET, ['demo', '--once'], { env: { TMPDIR: tmp } });
    assert.equal(code, 1, stderr);
    assert.match(stderr, /control characters\nlimpet: the gateway did not start; its words are/);
    assert.deepEqual(readdirSync(tmp), []);
  });

  test('an answer that never comes ends the demo after 10 s: status 1', async t => {
    const { proc, children } = await held(t);
    const { code } = await Promise.race([proc.ended, sleep(20_000, {}, { ref: false })]);
    assert.equal(code, 1, proc.log);
    assert.match(proc.stderr, /limpet: the demo took longer than 10 s and was ended/);
    await gone(children.map(child => child.pid));
  });

  test('interrupted before it is over: status 1', async t => {
    const { proc, children } = await held(t);
    proc.kill('SIGINT');
    const { code } = await Promise.race([proc.ended, sleep(30_000, {}, { ref: false })]);
    assert.equal(code, 1, proc.log);
    assert.match(proc.stderr, /limpet: the demo was interrupted/);
    await gone(children.map(child => child.pid));
  });

  test('no folder to work in: a sentence, status 1', async () => {
    const { code, stderr } = await run(LIMPET, ['demo', '--once'], { env: { TMPDIR: '/nowhere' } });
    assert.equal(code, 1);
    assert.match(stderr, /no folder for the demo could be made in \/nowhere/);
  });

  for (const [args, message] of [[['--twice'], /no flag --twice/], [['x'], /a word too many/],
    [['--once=1'], /--once takes no value/]]) {
    test(`demo ${args}: status 64`, async () => {
      const { code, stderr } = await run(LIMPET, ['demo', ...args]);
      assert.equal(code, 64);
      assert.match(stderr, message);
    });
  }
});

suite('limpet demo', () => {
  test('goes on: the gateway holds a session, the round robin loses it', async t => {
    const { proc, gateway, robin } = await running(t);
    const session = await Session.open(gateway);
    for (const n of ['1', '2', '3', '4']) assert.equal(await session.tool('counter'), n);
    const opened = await post(robin, initialize());
    const lost = Object.assign(new Session(robin), { id: opened.headers['mcp-session-id'] });
    const statuses = [];
    for (let i = 0; i < 6; i++) statuses.push((await lost.ask('ping')).status);
    assert.deepEqual(statuses.toSorted(), [200, 200, 404, 404, 404, 404]);
    const [, command] = /(curl -i [\s\S]*?')\nGateway/.exec(proc.stdout);
    const { stdout } = await run('sh', ['-c', command]);
    assert.match(stdout, /^HTTP\/1\.1 200 OK\r\n[\s\S]*mcp-session-id: lp1_/);
  });

  test('the round robin is a proxy: streams, large bodies, its own refusals', async t => {
    const { robin, children } = await running(t);
    const opened = await post(robin, initialize());
    const session = Object.assign(new Session(robin), { id: opened.headers['mcp-session-id'] });
    const owner = async () => { // skip the two replicas that do not know the session
      for (let i = 0; i < 2; i++) await session.ask('ping');
    };
    await owner();
    const stream = await session.stream();
    assert.equal(stream.status, 200);
    await stream.events.until(events => events.comments.length > 0);
    stream.close();
    await owner();
    const message = 'm'.repeat(200_000);
    assert.equal(await session.tool('echo', { message }), message);
    const over = await session.callTool('echo', { message: 'm'.repeat(300_000) }).catch(e => e);
    assert.ok(over.status === 413 || over.code === 'ECONNRESET' || over.code === 'EPIPE', over);
    const long = await send(robin, { headers: { 'x-long': 'x'.repeat(10_000) } });
    assert.equal(long.status, 431);
    const garbled = await new Promise((resolve, reject) => {
      const { port } = new URL(robin);
      const socket = net.connect(Number(port), '127.0.0.1', () => socket.write('nonsense\r\n\r\n'));
      let text = '';
      socket.on('data', data => { text += data; }).on('close', () => resolve(text));
      socket.on('error', reject);
    });
    assert.match(garbled, /^HTTP\/1\.1 400 /);
    killReplicas(children);
    await sleep(100);
    assert.equal((await session.ask('ping')).status, 502);
  });

  test('a replica that breaks off in mid-answer breaks the client off', async t => {
    const { robin, children } = await running(t);
    const opened = await post(robin, initialize());
    const session = Object.assign(new Session(robin), { id: opened.headers['mcp-session-id'] });
    for (let i = 0; i < 2; i++) await session.ask('ping');
    const stream = await session.stream();
    await stream.events.until(events => events.comments.length > 0);
    killReplicas(children);
    await stream.events.ended();
    assert.notEqual(stream.events.end, 'end', 'it does not look whole');
  });

  for (const signal of ['SIGINT', 'SIGTERM']) {
    test(`${signal}: all of it ends, status 0, nothing left`, async t => {
      const { proc, tmp, children } = await running(t);
      assert.equal(children.length, 4);
      assert.deepEqual(await proc.stop(signal, 10_000), { code: 0, signal: null });
      await gone(children.map(child => child.pid));
      assert.deepEqual(readdirSync(tmp), []);
    });
  }

  test('kill -9 of the demo takes its children along', async t => {
    const { proc, children } = await running(t);
    await proc.stop('SIGKILL');
    await gone(children.map(child => child.pid));
  });
});
