// What an operator sees: /live, /ready and /metrics, the access log, events in words, and a stop that
// lets running calls finish ([G13], [G14]).
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { folder, gateway, keyFile, newKey } from './lib/gateway.mjs';
import { send } from './lib/http.mjs';
import { freePort } from './lib/ports.mjs';
import { conf, urls } from './lib/replicas.mjs';
import { rawClient, rawExchange, requestText } from './lib/raw.mjs';
import { answerOf, post, request, Session, SESSION, toolCall } from './lib/rpc.mjs';
import { tinies, tiny } from './lib/tiny.mjs';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';

// Prometheus text -> { 'name{labels}': value }; fails on a line that is none.
function parseMetrics(text) {
  const values = {};
  const typed = new Set();
  for (const line of text.trimEnd().split('\n')) {
    const type = /^# (HELP|TYPE) (\w+) /.exec(line);
    if (type) { if (type[1] === 'TYPE') typed.add(type[2]); continue; }
    const sample = /^([a-z_:]+)(\{[^}]*\})? (-?[\d.e+]+|\+Inf|NaN)$/.exec(line);
    assert.ok(sample, `not a sample: ${line}`);
    const family = sample[1].replace(/_(bucket|sum|count)$/, '');
    assert.ok(typed.has(sample[1]) || typed.has(family), `${sample[1]} has no TYPE`);
    assert.equal(values[sample[1] + (sample[2] ?? '')], undefined, `${line} is there twice`);
    values[sample[1] + (sample[2] ?? '')] = Number(sample[3]);
  }
  return values;
}

async function metrics(limpet) {
  const answer = await limpet.admin('/metrics');
  assert.equal(answer.status, 200);
  assert.match(answer.headers['content-type'], /^text\/plain.*version=0\.0\.4/);
  return parseMetrics(answer.text);
}

suite('the admin listener', () => {
  test('/live and /ready', async t => {
    const [replica] = await tinies(t, 1);
    const limpet = await gateway(t, { replicas: [replica.url] });
    assert.equal((await limpet.admin('/live')).status, 200);
    assert.equal((await limpet.admin('/ready')).status, 200);
    assert.equal((await limpet.admin('/nothing')).status, 404);
    assert.equal((await send(`http://127.0.0.1:${limpet.adminPort}/live`,
      { method: 'POST', body: 'x' })).status, 405);
    assert.equal((await send(limpet.at('/metrics'))).status, 404, 'not on the client listener');
  });

  test('what is no request: 400, too large a head 431, one that drips 408', async t => {
    const [replica] = await tinies(t, 1);
    const limpet = await gateway(t, { replicas: [replica.url],
      config: { timeouts: { request: '500ms' } } });
    const status = async text => (await rawExchange(limpet.adminPort, text)).status;
    assert.equal(await status('GET /live\r\n\r\n'), 400);
    assert.equal(await status(requestText('GET', '/live', { 'X-Long': 'x'.repeat(100_000) })), 431);
    const connection = await rawClient(limpet.adminPort, 'GET /live HTTP/1.1\r\nX: ');
    for (let i = 0; i < 50 && !connection.end; i++) await connection.dribble('x', 50);
    assert.match(connection.text, /^HTTP\/1\.1 408 /);
  });

  test('not ready while no replica is up, ready again by itself', async t => {
    const port = await freePort();
    const limpet = await gateway(t, { replicas: [`http://127.0.0.1:${port}/mcp`],
      server: { gone_after: '300ms' } });
    await post(limpet.url, request(1, 'initialize', {}));
    await sleep(1500);
    assert.equal((await limpet.admin('/ready')).status, 503);
    assert.equal((await limpet.admin('/live')).status, 200);
    await tiny(t, 'r1', { port });
    await sleep(1200);
    assert.equal((await limpet.admin('/ready')).status, 200);
  });

  test('/metrics counts what happened', async t => {
    const replicas = await tinies(t, 2);
    const limpet = await gateway(t, { replicas: urls(replicas) });
    const before = await metrics(limpet);
    const sessions = await Promise.all(Array.from({ length: 4 }, () => Session.open(limpet.url)));
    await sessions[0].delete();
    await post(limpet.url, request(1, 'ping'), { [SESSION]: 'forged' });
    const values = await metrics(limpet);
    assert.equal(values.limpet_sessions_opened_total, 4);
    assert.equal(values['limpet_sessions_ended_total{cause="deleted"}'], 1);
    assert.equal(values.limpet_requests_total, 10);
    assert.equal(values.limpet_connections_accepted_total - before.limpet_connections_accepted_total,
      10, 'those of the admin are left out');
    assert.equal(values['limpet_exchanges_total{reason="session_forged"}'], 1);
    assert.equal(values['limpet_exchanges_total{reason="answered"}'], 9);
    assert.equal(values['limpet_responses_total{class="2xx"}'], 9);
    assert.equal(values['limpet_responses_total{class="4xx"}'], 1);
    assert.equal(values.limpet_first_byte_seconds_count >= 9, true);
    const up = Object.entries(values).filter(([name]) => name.startsWith('limpet_replica_up{'));
    assert.deepEqual(up.map(([, value]) => value), [1, 1]);
    const held = Object.entries(values)
      .filter(([name]) => name.startsWith('limpet_replica_sessions{')).map(([, value]) => value);
    assert.equal(held.reduce((a, b) => a + b), 3);
    assert.ok(Object.keys(values).some(name => /^limpet_build_info\{version="[\d.]+"\}/.test(name)));
  });

  test('several threads answer as one', async t => {
    const replicas = await tinies(t, 3);
    const limpet = await gateway(t, { replicas: urls(replicas), flags: ['--threads', '3'] });
    for (let i = 0; i < 12; i++) {
      const session = await Session.open(limpet.url);
      const owner = await session.tool('whoami');
      for (let n = 2; n < 5; n++) assert.equal(await session.tool('count'), `${owner} ${n}`);
      assert.equal((await session.delete()).status, 200);
      assert.equal((await session.ask('ping')).status, 404);
    }
    let values;
    const end = performance.now() + 3000; // the last end is counted by another thread
    do values = await metrics(limpet);
    while (values['limpet_sessions_ended_total{cause="deleted"}'] !== 12 && performance.now() < end);
    assert.equal(values.limpet_sessions_opened_total, 12);
    assert.equal(values['limpet_sessions_ended_total{cause="deleted"}'], 12);
  });
});

suite('the log', () => {
  test('an access record says who answered, how, and why it ended', async t => {
    const replica = await tiny(t);
    const limpet = await gateway(t, { replicas: [replica.url] });
    const session = await Session.open(limpet.url);
    await session.tool('whoami');
    await post(limpet.url, request(1, 'ping'), { [SESSION]: 'forged' });
    const call = await limpet.record(r => r.rpc_method === 'tools/call');
    assert.match(call.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.ok(Math.abs(Date.parse(call.time) - Date.now()) < 20_000);
    assert.equal(call.server, 'default');
    assert.equal(call.http_method, 'POST');
    assert.equal(call.path, '/mcp');
    assert.equal(call.status, 200);
    assert.equal(call.reason, 'answered');
    assert.equal(call.replica, `127.0.0.1:${replica.port}/mcp`);
    assert.ok(call.incarnation >= 1);
    assert.match(call.trace_id, /^[0-9a-f]{32}$/);
    assert.ok(call.duration_ms > 0 && call.first_byte_ms > 0);
    assert.ok(call.bytes_in > 0 && call.bytes_out > 0);
    const opened = await limpet.record(r => r.rpc_method === 'initialize');
    assert.equal(call.session, opened.session, 'one name for one session');
    const lost = await limpet.record(r => r.reason === 'session_forged');
    assert.equal(lost.status, 404);
    assert.equal(lost.replica, undefined);
    assert.ok(!limpet.proc.log.includes(session.id.slice(10, 60)), 'no ticket in the log');
    const upstream = replica.requests.at(-1).headers[SESSION];
    assert.ok(!limpet.proc.log.includes(upstream), 'no upstream id in the log');
  });

  test('credentials are in no log, at any level', async t => {
    const replica = await tiny(t);
    const limpet = await gateway(t, { replicas: [replica.url], flags: ['--log-level', 'debug'] });
    const session = await Session.open(limpet.url,
      { headers: { authorization: 'Bearer s3cr3t-token', cookie: 'c=s3cr3t-cookie' } });
    await session.tool('whoami');
    await limpet.record(r => r.rpc_method === 'tools/call');
    assert.ok(!limpet.proc.log.includes('s3cr3t'));
    assert.ok(!limpet.proc.log.includes(session.id.slice(10, 60)));
  });

  test('a full disk: stderr says it once, the lines are counted', async t => {
    const limpet = await gateway(t, { replicas: urls(await tinies(t, 1)),
      flags: ['--log-file', '/dev/full'] });
    await limpet.proc.says(/log lines for \/dev\/full are lost: No space left on device; make room/);
    await sleep(300); // the lines of the start are all written, or rather lost
    const before = (await metrics(limpet)).limpet_log_lines_lost_total;
    assert.ok(before >= 3, `the lines of the start: ${before}`);
    for (let i = 0; i < 5; i++) {
      await Session.open(limpet.url);
      await sleep(20);
    }
    await sleep(300);
    const after = (await metrics(limpet)).limpet_log_lines_lost_total;
    assert.equal(after - before, 10, 'a line for each request');
    assert.equal(limpet.proc.log.match(/are lost/g).length, 1);
    assert.equal((await metrics(limpet)).limpet_log_reopen_failures_total, 0);
  });

  test('SIGHUP with a log folder that is gone: stderr says it, and it is counted', async t => {
    const dir = path.join(folder(t), 'log');
    mkdirSync(dir);
    const limpet = await gateway(t, { replicas: urls(await tinies(t, 1)),
      flags: ['--log-file', path.join(dir, 'limpet.log')] });
    rmSync(dir, { recursive: true });
    limpet.proc.kill('SIGHUP');
    await limpet.proc.says(/cannot open the log file \S+ again: No such file or directory; the old/);
    assert.equal((await metrics(limpet)).limpet_log_reopen_failures_total, 1);
  });

  test('log.file: lines go there', async t => {
    const file = path.join(folder(t), 'limpet.log');
    const limpet = await gateway(t, { replicas: urls(await tinies(t, 1)),
      flags: ['--log-file', file] });
    await Session.open(limpet.url);
    await sleep(300);
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n').map(line => JSON.parse(line));
    assert.ok(lines.some(line => line.rpc_method === 'initialize'));
  });

  test('the start names address and key; a replica that dies and comes back is told of', async t => {
    const [one, two] = await tinies(t, 2);
    const limpet = await gateway(t, { replicas: urls([one, two]) });
    await limpet.proc.says(new RegExp(`127\\.0\\.0\\.1:${limpet.port}`));
    await limpet.proc.says(/key/i);
    await one.stop();
    for (let i = 0; i < 4; i++) await Session.open(limpet.url);
    await limpet.proc.says(new RegExp(
      `replica 127\\.0\\.0\\.1:${one.port}/mcp is gone: connection refused \\(server default`));
    await tiny(t, 'r1', { port: one.port });
    await limpet.proc.says(new RegExp(`127\\.0\\.0\\.1:${one.port}.* up`));
  });

  test('an id of an unknown key is logged apart from a forged one', async t => {
    const replicas = urls(await tinies(t, 1));
    const limpet = await gateway(t, { replicas, key: keyFile(t, newKey()) });
    const session = await Session.open(limpet.url);
    await limpet.restart({ key: keyFile(t, newKey()) });
    await session.ask('ping');
    await limpet.record(r => r.reason === 'session_unknown_key');
  });
});

suite('the end', () => {
  test('SIGTERM: a running call finishes, streams end, new ones are refused, status 0', async t => {
    const limpet = await gateway(t, { replicas: urls(await conf(t, 2)) });
    const session = await Session.open(limpet.url);
    const stream = await session.stream();
    const running = session.post(toolCall(5, 'slow', { ms: 1200 }));
    await sleep(200);
    const began = performance.now();
    const stopped = limpet.stop('SIGTERM', 12_000);
    await sleep(150);
    await assert.rejects(send(limpet.url, { within: 1000 }), /ECONNREFUSED/);
    await stream.events.ended(3000);
    assert.equal(stream.events.end, 'end', 'ended properly');
    const answer = await running;
    assert.equal(answer.status, 200);
    assert.ok(answerOf(answer).result, answer.text);
    assert.deepEqual(await stopped, { code: 0, signal: null });
    assert.ok(performance.now() - began < 3000, 'it ended with its last call');
  });

  test('SIGTERM: what outlasts stop_after is cut, status 0 all the same', async t => {
    const limpet = await gateway(t, { replicas: urls(await conf(t, 1)),
      config: { stop_after: '500ms' } });
    const session = await Session.open(limpet.url);
    const running = session.post(toolCall(5, 'slow', { ms: 8000 })).catch(error => error);
    await sleep(200);
    const began = performance.now();
    const { code } = await limpet.stop('SIGTERM', 5000);
    assert.equal(code, 0);
    assert.ok(performance.now() - began < 2000);
    const answer = await running;
    assert.ok(answer instanceof Error || answer.status !== 200 || answerOf(answer)?.error ||
      answerOf(answer) === undefined, 'no invented result');
  });

  for (const signal of ['SIGINT', 'SIGTERM']) {
    test(`${signal} with nothing to do: at once, status 0`, async t => {
      const limpet = await gateway(t, { replicas: urls(await tinies(t, 1)) });
      const began = performance.now();
      assert.equal((await limpet.stop(signal)).code, 0);
      assert.ok(performance.now() - began < 1000);
    });
  }
});
