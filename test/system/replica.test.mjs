// `limpet replica`: the sample server over real sockets, from its flags to its end.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { freePort } from './lib/ports.mjs';
import { LIMPET, run, start } from './lib/proc.mjs';
import { answerOf, assertLost, assertRpcError, notification, post, request, Session, SESSION,
  toolCall } from './lib/rpc.mjs';

async function replica(t, ...flags) {
  let proc;
  t.after(() => proc?.stop()); // it ends by itself, so that a coverage build counts it
  proc = start(t, 'limpet replica', LIMPET, ['replica', ...flags]);
  const [, url] = await proc.says(/listening on (http:\S+)\n/);
  return { proc, url };
}

suite('limpet replica', () => {
  test('says where it listens, answers there, and tells its name', async t => {
    const { proc, url } = await replica(t, '--name', 'blue', '--path', '/x/mcp');
    assert.match(proc.stdout, /^replica blue is listening on http:\/\/127\.0\.0\.1:\d+\/x\/mcp\n$/);
    const session = await Session.open(url);
    const { tools } = answerOf(await session.ask('tools/list')).result;
    assert.deepEqual(tools.map(tool => tool.name), ['echo', 'whoami', 'counter', 'slow', 'notify', 'ask']);
    for (const tool of tools) assert.equal(tool.inputSchema.type, 'object');
    assert.equal(await session.tool('whoami'), 'blue');
    assert.equal(await session.tool('echo', { message: 'é "quoted" \u2028 😀' }),
      'é "quoted" \u2028 😀');
    assert.equal((await post(url.replace('/x/mcp', '/mcp'), request(1, 'ping'))).status, 404);
  });

  test('a counter for each session, and none that another process knows', async t => {
    const [a, b] = [await replica(t), await replica(t)];
    const [one, two] = [await Session.open(a.url), await Session.open(a.url)];
    for (const expected of ['1', '2', '3']) assert.equal(await one.tool('counter'), expected);
    assert.equal(await two.tool('counter'), '1');
    one.url = b.url;
    assertLost(await one.callTool('counter'), 4);
  });

  test('slow: progress as a stream, plain JSON for who takes no stream', async t => {
    const { url } = await replica(t);
    const session = await Session.open(url);
    const answer = await session.openPost(request(7, 'tools/call', { name: 'slow',
      arguments: { ms: 300, steps: 3 }, _meta: { progressToken: 'p' } }));
    await answer.events.ended();
    const messages = answer.events.messages;
    assert.deepEqual(messages.slice(0, 3).map(m => m.params),
      [1, 2, 3].map(progress => ({ progressToken: 'p', progress, total: 3 })));
    assert.equal(messages[3].id, 7);
    const gaps = answer.events.events.map(event => event.at);
    assert.ok(gaps[2] - gaps[0] > 150, 'progress comes while it works');
    const plain = await session.post(toolCall(8, 'slow', { ms: 10 }),
      { accept: 'application/json' });
    assert.equal(plain.json.id, 8);
  });

  test('notify reaches the GET stream; one stream at a time', async t => {
    const { url } = await replica(t);
    const session = await Session.open(url);
    const stream = await session.stream();
    await stream.events.until(events => events.comments.length > 0);
    assert.equal((await session.get()).status, 409);
    assert.equal(await session.tool('notify', { count: 2 }), 'sent 2');
    await stream.events.message(m => m.method === 'notifications/message' &&
      m.params.data.number === 2);
    stream.close();
    let status;
    for (let i = 0; i < 50 && status !== 200; i++) {
      const again = await session.stream();
      ({ status } = again);
      again.close();
    }
    assert.equal(status, 200);
  });

  test('statuses: no id, unknown id, bad JSON, batch, DELETE', async t => {
    const { url } = await replica(t);
    const session = await Session.open(url);
    assertRpcError(await post(url, request(1, 'ping')), { status: 400, code: -32000, id: 1 });
    assertLost(await post(url, request(1, 'ping'), { [SESSION]: 'nobody' }), 1);
    assertRpcError(await session.post('{'), { status: 400, code: -32700 });
    assertRpcError(await session.post(`[${request(1, 'ping')}]`), { status: 400, code: -32600 });
    const cancel = notification('notifications/cancelled', { requestId: 9 });
    assert.equal((await session.post(cancel)).status, 202);
    assert.equal((await session.delete()).status, 200);
    assertLost(await session.ask('ping'), 1);
  });

  test('--sessions: the one that was idle longest makes room', async t => {
    const { url } = await replica(t, '--sessions', '2');
    const [a, b] = [await Session.open(url), await Session.open(url)];
    assert.equal((await a.ask('ping')).status, 200);
    await Session.open(url);
    assert.equal((await a.ask('ping')).status, 200);
    assertLost(await b.ask('ping'), 1);
  });

  test('a body of 3 MiB is echoed whole; over 4 MiB is refused', async t => {
    const { url } = await replica(t);
    const session = await Session.open(url);
    const message = 'm'.repeat(3 << 20);
    assert.equal(await session.tool('echo', { message }), message);
    const over = await session.callTool('echo', { message: 'm'.repeat(4 << 20) }).catch(e => e);
    assert.ok(over.status === 413 || over.code === 'ECONNRESET' || over.code === 'EPIPE', over);
  });

  test('SIGTERM ends streams, finishes a call, status 0', async t => {
    const { proc, url } = await replica(t);
    const session = await Session.open(url);
    const stream = await session.stream();
    const call = session.callTool('slow', { ms: 400, steps: 1 });
    await new Promise(resolve => setTimeout(resolve, 100));
    const stopped = proc.stop();
    await stream.events.ended();
    assert.equal(stream.events.end, 'end');
    assert.ok(answerOf(await call).result);
    assert.deepEqual(await stopped, { code: 0, signal: null });
  });
});

suite('mistakes', () => {
  const MISTAKES = [
    [['--lisen', 'x'], /there is no flag --lisen/],
    [['--listen'], /--listen needs a value/],
    [['--listen', 'nowhere'], /"nowhere" is no address; write host:port/],
    [['--listen', '127.0.0.1:70000'], /is no address/],
    [['--name', 'two words'], /"two words" is no name/],
    [['--path', 'mcp'], /"mcp" is no path/],
    [['--path', '/a b'], /is no path/],
    [['--sessions', '0'], /"0" is no whole number from 1/],
    [['--sessions=-1'], /"-1" is no whole number/],
    [['--session', 'shared'], /--session shared needs a store/],
    [['--session=odd'], /there is no mode "odd"/],
    [['--owner', 'm-1'], /"m-1" is no owner id/],
    [['--owner', 'm'.repeat(33)], /is no owner id/],
    [['--replay', 'fly'], /--replay needs an owner id/],
    [['--owner', 'm1', '--replay', 'away'], /there is no way "away"/],
    [['extra'], /a word too many: "extra"/],
    [['a', 'b', 'c', 'd', 'e'], /a word too many: "e"/],
  ];
  for (const [args, message] of MISTAKES) {
    test(args.join(' '), async () => {
      const { code, stdout, stderr } = await run(LIMPET, ['replica', ...args]);
      assert.equal(code, 64, stderr);
      assert.equal(stdout, '');
      assert.match(stderr, message);
      assert.equal(stderr.trimEnd().split('\n').length, 1);
    });
  }

  test('a port in use: a sentence that says what to do, status 1', async t => {
    const port = await freePort();
    await replica(t, '--listen', `127.0.0.1:${port}`);
    const { code, stderr } = await run(LIMPET, ['replica', '--listen', `127.0.0.1:${port}`]);
    assert.equal(code, 1);
    assert.match(stderr, /in use; stop the other program or choose another --listen/);
  });

  test('an address of another machine: status 1', async () => {
    const { code, stderr } = await run(LIMPET, ['replica', '--listen', '192.0.2.1:1']);
    assert.equal(code, 1);
    assert.match(stderr, /cannot listen on 192\.0\.2\.1:1/);
  });
});
