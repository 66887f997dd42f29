// `limpet connect` as the command of a real stdio client (requirements [C11]): whole sessions by the
// official SDK, a replica that loses its memory, servers of both eras, and what a host may do wrong.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { suite, test } from 'node:test';
import { byHand, INITIALIZE } from '../system/lib/bridge.mjs';
import { KINDS, until } from '../system/lib/flow.mjs';
import { folder, gateway } from '../system/lib/gateway.mjs';
import { host } from '../system/lib/host.mjs';
import { freePort } from '../system/lib/ports.mjs';
import { LIMPET, sleep, start } from '../system/lib/proc.mjs';
import { conf, everything, everythingSse, modernOnly } from '../system/lib/replicas.mjs';

const textOf = result => result.content[0].text;
const call = (client, [name, args], options) =>
  client.callTool({ name, arguments: args }, undefined, options);

async function wholeSession(connected, kind) {
  const { client, seen } = connected;
  const owner = await kind.whoami(client);
  assert.ok((await client.listTools()).tools.length > 0);
  assert.ok((await client.listResources()).resources.length > 0);
  assert.ok((await client.listPrompts()).prompts.length > 0);
  await call(client, kind.tool.progress, { onprogress: () => { seen.progress++; } });
  assert.ok(seen.progress >= 1, 'progress came');
  await call(client, kind.tool.sampling);
  assert.equal(seen.sampling, 1, 'sampling was asked');
  await call(client, kind.tool.elicitation);
  assert.equal(seen.elicitation, 1, 'elicitation was asked');
  const many = await Promise.all(Array.from({ length: 20 }, () => kind.whoami(client)));
  assert.deepEqual(new Set(many), new Set([owner]));
  return owner;
}

suite('the bridge with the official client', () => {
  test('a whole session with server-everything', async t => {
    const [replica] = await everything(t, 1);
    const connected = await host(t, replica.url);
    await wholeSession(connected, KINDS.everything);
    await call(connected.client, KINDS.everything.tool.notify);
    await until(() => connected.seen.log > 0, 8000, 'a notification of the GET stream');
    assert.deepEqual(connected.seen.errors, []);
  });

  test('a whole session with the conformance server, and with old SSE found out', async t => {
    const [replica] = await conf(t, 1);
    await wholeSession(await host(t, replica.url), KINDS.conf);
    const [old] = await everythingSse(t, 1);
    const connected = await host(t, `http://127.0.0.1:${old.port}/sse`);
    await wholeSession(connected, KINDS.everything);
    assert.deepEqual(connected.seen.errors, []);
  });

  test('closing ends the session at the server', async t => {
    const port = await freePort();
    const replica = start(t, 'replica', LIMPET,
      ['replica', '--era', 'legacy', '--listen', `127.0.0.1:${port}`,
        '--sessions', '1']);
    await replica.listening(port);
    const log = path.join(folder(t), 'log');
    const { client } = await host(t, `http://127.0.0.1:${port}/mcp`, ['--log-file', log]);
    await client.listTools();
    await client.close();
    const said = readFileSync(log, 'utf8');
    assert.match(said, /> DELETE .*[^]*< 20[0-9]/, 'DELETE is answered');
    assert.match(said, /mcp-session-id: #[0-9a-f]{8}\n/i);
    assert.ok(!/mcp-session-id: [^#]/i.test(said), 'no session id in the log');
  });

  test('cancelling reaches the server', async t => {
    const [replica] = await conf(t, 1);
    const { client } = await host(t, replica.url);
    const stop = new AbortController();
    const slow = client.callTool({ name: 'slow', arguments: { ms: 5000 } }, undefined,
      { signal: stop.signal });
    await sleep(200);
    stop.abort('enough');
    await assert.rejects(slow);
    await client.ping();
    const seen = JSON.stringify(await replica.seen());
    assert.match(seen, /notifications\/cancelled/);
  });

  test('a modern-only server', async t => {
    const [replica] = await modernOnly(t, 1);
    const { client, seen } = await host(t, replica.url);
    assert.ok((await client.listTools()).tools.length > 0);
    assert.equal(textOf(await client.callTool({ name: 'whoami', arguments: {} })), 'r1');
    await client.ping();
    assert.deepEqual(seen.errors, []);
  });
});

async function restartable(t) {
  const port = await freePort();
  const args = ['replica', '--era', 'legacy', '--listen', `127.0.0.1:${port}`];
  const first = start(t, 'replica', LIMPET, args);
  await first.listening(port);
  const restart = async () => {
    const again = start(t, 'replica again', LIMPET, args);
    await again.listening(port);
    return again;
  };
  return { url: `http://127.0.0.1:${port}/mcp`, first, restart };
}

suite('a lost session', () => {
  test('it is opened again once, and a list succeeds', async t => {
    const { url, first, restart } = await restartable(t);
    const { client, seen } = await host(t, url);
    await client.listTools();
    await first.stop('SIGKILL');
    await restart();
    const lists = await Promise.all(Array.from({ length: 8 }, () => client.listTools()));
    for (const list of lists) assert.ok(list.tools.length > 0);
    assert.equal(seen.said.match(/a new one is open/g)?.length, 1, seen.said);
    assert.deepEqual(seen.errors, []);
  });

  test('a call that cannot have run is sent to the new session', async t => {
    const { url, first, restart } = await restartable(t);
    const { client } = await host(t, url);
    const count = async () => (await client.callTool({ name: 'counter', arguments: {} }))
      .structuredContent.count;
    assert.equal(await count(), 1);
    assert.equal(await count(), 2);
    await first.stop('SIGKILL');
    await restart();
    assert.equal(await count(), 1, 'the new session has counted this call, and only once');
  });

  test('a call that may have run is reported and not repeated', async t => {
    const { url, first, restart } = await restartable(t);
    const { client } = await host(t, url);
    const count = async () => (await client.callTool({ name: 'counter', arguments: {} }))
      .structuredContent.count;
    assert.equal(await count(), 1);
    const slow = client.callTool({ name: 'slow', arguments: { seconds: 5 } });
    const verdict = assert.rejects(slow, /may have run, so it was not sent again/);
    await sleep(300);
    await first.stop('SIGKILL');
    await verdict;
    await restart();
    assert.equal(await count(), 1, 'nothing but this call has counted in the new session');
  });

  test('a server that is away for a moment is waited for', async t => {
    const { url, first, restart } = await restartable(t);
    const { client } = await host(t, url);
    await first.stop('SIGKILL');
    const list = client.listTools();
    await sleep(400);
    await restart();
    assert.ok((await list).tools.length > 0);
  });
});

test('a gateway that has no replica for a moment is waited for', async t => {
  const { url, first, restart } = await restartable(t);
  const limpet = await gateway(t, { replicas: [url] });
  const { client } = await host(t, limpet.url);
  await client.listTools();
  await first.stop('SIGKILL');
  await sleep(700); // refused twice: gone, and the session is lost
  const list = client.listTools();
  await sleep(1500);
  await restart();
  assert.ok((await list).tools.length > 0);
});

suite('by hand', () => {
  test('only messages on stdout; ids come back byte for byte; errors have sentences', async t => {
    const [replica] = await conf(t, 1);
    const bridge = byHand(t, replica.url);
    bridge.send('not json\n');
    bridge.send({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    bridge.send('[]\n');
    await until(() => bridge.lines.length === 3, 3000, 'three refusals');
    assert.match(bridge.lines[0], /-32700.*not valid JSON/);
    assert.match(bridge.lines[1], /"id":1.*send initialize first/);
    assert.match(bridge.lines[2], /-32600/);
    bridge.send(INITIALIZE);
    const opened = await bridge.answer('open');
    assert.equal(opened.result.protocolVersion, '2025-06-18');
    bridge.send('{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}\n');
    await until(() => bridge.lines.some(line => line.includes('"id":12345678901234567890')), 3000,
      'the id comes back');
    bridge.send({ ...INITIALIZE, id: 'again' });
    assert.match((await bridge.answer('again')).error.message, /session is open/);
    bridge.child.stdin.end();
    assert.equal(await bridge.ended, 0);
    for (const line of bridge.lines) JSON.parse(line);
  });

  test('what was asked before the input ended is answered', async t => {
    const [replica] = await conf(t, 1);
    const bridge = byHand(t, replica.url);
    bridge.send(INITIALIZE);
    bridge.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    bridge.send({ jsonrpc: '2.0', id: 2, method: 'tools/call',
      params: { name: 'slow', arguments: { ms: 300 } } });
    bridge.child.stdin.end();
    assert.equal(await bridge.ended, 0);
    assert.ok(bridge.find('open').result);
    assert.ok(bridge.find(2).result);
  });

  test('a server of both eras: the host, which speaks legacy, has its session', async t => {
    const proc = start(t, 'limpet replica', LIMPET, ['replica']);
    const [, url] = await proc.says(/listening on (http:\S+)\n/);
    const bridge = byHand(t, url);
    bridge.send(INITIALIZE);
    assert.ok((await bridge.answer('open')).result);
    bridge.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    for (let id = 1; id <= 3; id++) {
      bridge.send({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'counter' } });
      assert.equal((await bridge.answer(id)).result.content[0].text, String(id));
    }
  });

  test('a modern host is led to initialize', async t => {
    const [replica] = await conf(t, 1);
    const bridge = byHand(t, replica.url);
    bridge.send({ jsonrpc: '2.0', id: 'probe', method: 'server/discover', params: { _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {} } } });
    const { error } = await bridge.answer('probe');
    assert.equal(error.code, -32022);
    assert.deepEqual(error.data.supported[0], '2025-11-25');
    bridge.send(INITIALIZE);
    assert.ok((await bridge.answer('open')).result);
  });

  test('SIGTERM ends it at once, with status 0, though a call runs', async t => {
    const [replica] = await conf(t, 1);
    const bridge = byHand(t, replica.url);
    bridge.send(INITIALIZE);
    await bridge.answer('open');
    bridge.send({ jsonrpc: '2.0', id: 2, method: 'tools/call',
      params: { name: 'slow', arguments: { ms: 20000 } } });
    await sleep(200);
    bridge.child.kill('SIGTERM');
    assert.equal(await Promise.race([bridge.ended, sleep(3000)]), 0);
  });

  test('a host that is gone ends it', async t => {
    const [replica] = await conf(t, 1);
    const bridge = byHand(t, replica.url);
    bridge.send(INITIALIZE);
    await bridge.answer('open');
    bridge.child.stdout.destroy();
    bridge.send({ jsonrpc: '2.0', id: 2, method: 'ping' });
    assert.equal(await Promise.race([bridge.ended, sleep(4000)]), 0);
  });

  for (const [what, url, pattern] of [
    ['nothing listens there', async () => `http://127.0.0.1:${await freePort()}/mcp`, /refused/],
    ['a name that does not exist', () => 'http://no-such-host.invalid/mcp', /no-such-host/],
  ]) {
    test(`${what}: the opening gets a sentence`, async t => {
      const bridge = byHand(t, await url());
      bridge.send(INITIALIZE);
      const { error } = await bridge.answer('open');
      assert.match(error.message, pattern);
      bridge.child.stdin.end();
      await bridge.ended;
      assert.match(bridge.said, pattern);
    });
  }
});
