// Servers that are hard to reach or misbehave, through `limpet inspect` and `limpet connect`: behind
// TLS, self-signed, slow, sending garbage, gone in each phase of an exchange. What a user reads is one
// sentence that says what to do.
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { byHand } from './lib/bridge.mjs';
import { inspect } from './lib/inspect.mjs';
import { INFO } from './lib/played.mjs';
import { freePort } from './lib/ports.mjs';
import { LIMPET, sleep, start } from './lib/proc.mjs';
import { chunk, rawAnswer, rawPeer } from './lib/raw.mjs';
import { Authority, plainPeer, tlsFront, tlsPeer } from './lib/tls.mjs';
import { tiny } from './lib/tiny.mjs';

const FLAGS = ['--era', 'legacy', '--no-notification-stream'];

// Both commands fail, with the same sentence; connect tells it the host, and goes on living.
async function bothFail(t, url, pattern, { flags = [], call = true, within = 8000 } = {}) {
  const words = call ? ['call', 'pay'] : ['ping'];
  const outcome = await inspect([...FLAGS, ...flags, url, ...words], { within });
  assert.equal(outcome.code, 1, outcome.stdout + outcome.stderr);
  assert.match(outcome.stderr, pattern);
  const told = outcome.stderr.split('\n').filter(line => line.startsWith('limpet: '));
  assert.equal(told.length, 1, `one sentence: ${outcome.stderr}`);
  assert.equal(outcome.stdout, '');
  const bridge = byHand(t, url, [...FLAGS, ...flags]);
  const opened = await bridge.open();
  const failed = opened.error ? opened : await bridge.tool('pay');
  assert.match(failed.error.message, pattern);
  assert.equal(typeof failed.error.code, 'number');
  assert.equal(await bridge.close(), 0, bridge.said);
}

async function bothWork(t, url, flags = []) {
  const outcome = await inspect([...FLAGS, ...flags, url, 'call', 'whoami']);
  assert.equal(outcome.code, 0, outcome.stderr);
  const bridge = byHand(t, url, [...FLAGS, ...flags]);
  assert.ok((await bridge.open()).result, bridge.said);
  assert.equal((await bridge.tool('whoami')).result.content[0].text, outcome.stdout.trim());
  assert.equal(await bridge.close(), 0);
  return outcome;
}

suite('behind TLS', () => {
  test('a server whose CA is given: a whole session', async t => {
    const authority = new Authority(t);
    const replica = await tiny(t, 'sealed');
    const front = await tlsFront(t, authority.issue('IP:127.0.0.1'), replica.port);
    const { stdout } = await bothWork(t, front.url, ['--cacert', authority.file]);
    assert.equal(stdout, 'sealed\n');
    assert.equal(replica.sessions.size, 0, 'both have deleted their sessions');
  });

  test('a self-signed one: refused, then believed with --cacert, or not looked at', async t => {
    const authority = new Authority(t);
    const certificate = authority.issue('IP:127.0.0.1', { isSelf: true });
    const replica = await tiny(t, 'self');
    const front = await tlsFront(t, certificate, replica.port);
    await bothFail(t, front.url, /nobody we trust has signed the certificate; name its CA with --cacert/);
    assert.equal(replica.requests.length, 0, 'nothing was sent');
    await bothWork(t, front.url, ['--cacert', certificate.file]);
    const { stderr } = await bothWork(t, front.url, ['--insecure']);
    assert.match(stderr, /--insecure: the server's certificate is not checked/);
  });

  test('out of date, not yet valid, for another name', async t => {
    const authority = new Authority(t);
    const { port } = await tiny(t);
    const flags = ['--cacert', authority.file];
    for (const [names, days, pattern] of [
      ['IP:127.0.0.1', [-9, -2], /certificate is too old or too new; renew it or set the clock/],
      ['IP:127.0.0.1', [2, 9], /certificate is too old or too new; renew it or set the clock/],
      ['DNS:other.example', [-1, 1], /certificate is for another name/],
    ]) {
      const front = await tlsFront(t, authority.issue(names, { days }), port);
      await bothFail(t, front.url, pattern, { flags });
    }
  });

  test('a port that speaks no TLS, and one that answers with garbage', async t => {
    const { port } = await tiny(t);
    await bothFail(t, `https://127.0.0.1:${port}/mcp`,
      /TLS handshake failed; see whether that port speaks https/);
    const peer = await plainPeer(t, socket => socket.end('\x15\x03\x03\x00\x02\x02\x28garbage'));
    await bothFail(t, peer.url, /TLS handshake failed/);
  });

  test('a TLS server that says nothing: a time-out', async t => {
    const peer = await plainPeer(t, () => {});
    await bothFail(t, peer.url, /in time|within/, { flags: ['--timeout', '1'], within: 15000 });
  });

  test('a connection that is cut without a word in the middle of the answer', async t => {
    const authority = new Authority(t);
    const flags = ['--cacert', authority.file];
    const peer = await tlsPeer(t, authority.issue('IP:127.0.0.1'), (socket, below) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{"jsonrpc":"2.0",');
        setTimeout(() => below.destroy(), 50);
      });
    });
    await bothFail(t, peer.url, /the connection broke in the middle of the answer/, { flags });
  });
});

// A raw server of sessions; `play` has its own way with tools/call and ping.
const raw = (t, play) => rawPeer(t, async (connection, request, peer) => {
  const { id, method } = request.body ? JSON.parse(request.body) : {};
  const reply = value => connection.send(rawAnswer(200, { 'Content-Type': 'application/json' },
    JSON.stringify({ jsonrpc: '2.0', id, result: value })));
  if (method === 'initialize') return reply(INFO);
  if (id === undefined) return connection.send(rawAnswer(method ? 202 : 405, {}));
  return play({ connection, request, id, method, reply, peer });
});
const EVENTS = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';

suite('slow', () => {
  test('slower than --timeout: what to do about it; just in time: fine', async t => {
    const slow = await raw(t, async ({ reply, method }) => {
      if (method !== 'tools/call') return reply({});
      await sleep(1500);
      return reply({ content: [{ type: 'text', text: 'late' }] });
    });
    await bothFail(t, slow.url,
      /tools\/call: no answer within 1\.0 s; give the server longer with --timeout/,
      { flags: ['--timeout', '1'] });
    await bothWork(t, slow.url, ['--timeout', '3']);
  });

  test('an answer that comes byte by byte', async t => {
    const peer = await raw(t, ({ connection, id, method }) => {
      const content = [{ type: 'text', text: 'ümläut' }];
      const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, result: { content } }));
      const answer = rawAnswer(200, { 'Content-Type': 'application/json' }, body.toString('latin1'));
      return method === 'tools/call' ? connection.dribble(answer) : connection.send(answer);
    });
    await bothWork(t, peer.url, ['--timeout', '5']);
  });

  test('nobody accepts, or accepts and never answers', async t => {
    const peer = await raw(t, ({ method, reply }) => (method === 'initialize' ? reply(INFO) : undefined));
    await bothFail(t, peer.url, /no answer within 1\.0 s/, { flags: ['--timeout', '1'] });
    await bothFail(t, `http://127.0.0.1:${await freePort()}/mcp`,
      /the connection was refused; is the server running/);
  });
});

suite('garbage', () => {
  const bytes = Buffer.from(Array.from({ length: 512 }, (_, i) => (i * 37 + 11) % 256)).toString('latin1');
  for (const [what, answer, pattern] of [
    ['bytes that are nothing', bytes, /does not speak HTTP|garbled/],
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n\r\n', /does not speak HTTP/],
    ['a head that is none', 'HTTP/1.1 200 OK\r\nno colon here\r\n\r\n', /does not speak HTTP|garbled/],
    ['a status that is none', 'HTTP/1.1 twohundred\r\n\r\n', /does not speak HTTP/],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}',
      /does not speak HTTP|garbled/],
    ['bad chunks', `${EVENTS}zz\r\nhello\r\n`, /garbled: its framing is not HTTP/],
    ['a page', rawAnswer(200, { 'Content-Type': 'text/html' }, '<html>hello</html>'),
      /answers 200 text\/html with something that is no MCP message; is the URL that of an MCP endpoint/],
    ['no JSON', rawAnswer(200, { 'Content-Type': 'application/json' }, '{"jsonrpc":'), /no MCP message/],
    ['JSON that is no message', rawAnswer(200, { 'Content-Type': 'application/json' }, '{"a":1}'),
      /no MCP message/],
    ['bytes in a body', rawAnswer(200, { 'Content-Type': 'application/json' }, bytes), /no MCP message/],
    ['no body', rawAnswer(200, { 'Content-Type': 'application/json' }),
      /sends no answer; a request must be answered/],
    ['an error page with bytes', rawAnswer(502, { 'Content-Type': 'text/html' }, bytes), /HTTP 502\)/],
    ['an event that is no message, and the end', `${EVENTS}${chunk('data: hello\n\n')}0\r\n\r\n`,
      /the stream ended before the answer came/],
  ]) {
    test(`${what}, in answer to a call`, async t => {
      const peer = await raw(t, async ({ connection }) => {
        await connection.send(answer);
        connection.close();
      });
      await bothFail(t, peer.url, pattern);
    });

    test(`${what}, in answer to initialize`, async t => {
      const peer = await rawPeer(t, async connection => {
        await connection.send(answer);
        connection.close();
      });
      await bothFail(t, peer.url, pattern);
    });
  }
});

suite('gone', () => {
  const BODY = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"jsonrpc"';
  const PHASES = [
    ['before a byte of the answer', '', /the connection broke before an answer came/],
    ['in the middle of the head', 'HTTP/1.1 200 OK\r\nConte', /the connection broke before an answer came/],
    ['after the head', EVENTS, /stream ended before the answer came/],
    ['in the middle of a body', BODY, /the connection broke in the middle of the answer/],
    ['in the middle of a chunk', `${EVENTS}ff\r\ndata: {`, /stream ended before the answer came/],
    ['in the middle of an event', EVENTS + chunk('data: {"jsonrpc":"2.0",'),
      /stream ended before the answer came/],
    ['between two events',
      EVENTS + chunk('data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n'),
      /stream ended before the answer came/],
  ];
  for (const [what, answer, pattern] of PHASES) {
    for (const how of ['close', 'reset']) {
      test(`${how} ${what}: told, not sent again`, async t => {
        let calls = 0;
        const peer = await raw(t, async ({ connection, method }) => {
          if (method === 'tools/call') calls++;
          await connection.send(answer);
          await sleep(20);
          connection[how === 'close' ? 'destroy' : 'reset']();
        });
        await bothFail(t, peer.url, pattern);
        assert.equal(calls, 2, 'each command has sent it once');
      });
    }
  }

  test('kill -9 of a real server before, between and within calls', async t => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/mcp`;
    const begin = async () => {
      const replica = start(t, 'replica', LIMPET, ['replica', '--listen', `127.0.0.1:${port}`]);
      await replica.listening(port);
      return replica;
    };
    let replica = await begin();
    const bridge = byHand(t, url, ['--era', 'legacy']);
    await bridge.open();
    assert.ok((await bridge.tool('echo', { message: 'a' })).result);
    await replica.stop('SIGKILL');
    const waiting = bridge.ask('tools/list');
    await sleep(200);
    replica = await begin();
    assert.ok((await waiting).result, 'a list waits for the server');
    const slow = bridge.tool('slow', { seconds: 9 });
    await sleep(200);
    await replica.stop('SIGKILL');
    assert.match((await slow).error.message, /may have run, so it was not sent again/);
    const { error } = await bridge.tool('echo', { message: 'b' }, 20000);
    assert.match(error.message, /refused/);
    replica = await begin();
    assert.ok((await bridge.tool('echo', { message: 'c' })).result, 'and then it goes on');
    await replica.stop('SIGKILL');
    assert.equal(await bridge.close(), 0, 'DELETE has nobody to go to');
  });
});
