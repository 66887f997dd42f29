// Replicas behind https ([G7]): sessions hold as over plain connections; who is not who the URL
// says, or does not speak TLS, gets no request, and the log says what to do; what was cut is never
// taken for whole.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import http from 'node:http';
import { suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from './lib/flow.mjs';
import { gateway } from './lib/gateway.mjs';
import { open, send } from './lib/http.mjs';
import { LIMPET, run } from './lib/proc.mjs';
import { conf } from './lib/replicas.mjs';
import { initialize, post, POST_HEADERS, request, Session } from './lib/rpc.mjs';
import { tiny } from './lib/tiny.mjs';
import { Authority, plainPeer, tlsFront, tlsPeer } from './lib/tls.mjs';

const IP = 'IP:127.0.0.1';
const NAME = 'DNS:localhost';

suite('https replicas', () => {
  test('sessions hold, with the host\'s name told and HTTP/1.1 agreed on', async t => {
    const authority = new Authority(t);
    const replicas = await conf(t, 2);
    const fronts = [
      await tlsFront(t, authority.issue(IP), replicas[0].port),
      await tlsFront(t, authority.issue(NAME), replicas[1].port, { host: 'localhost' })];
    const limpet = await gateway(t,
      { replicas: fronts.map(front => front.url), flags: ['--tls-ca', authority.file] });
    const owners = new Set();
    for (let i = 0; i < 6; i++) {
      const session = await Session.open(limpet.url);
      const owner = await session.tool('whoami');
      owners.add(owner);
      assert.equal(await session.tool('count'), `${owner} 1`);
      assert.equal(await session.tool('count'), `${owner} 2`);
    }
    assert.equal(owners.size, 2);
    const [byAddress, byName] = fronts.map(front => front.seen[0]);
    assert.deepEqual(byAddress, { alpn: 'http/1.1', name: false, version: 'TLSv1.3' });
    assert.deepEqual(byName, { alpn: 'http/1.1', name: 'localhost', version: 'TLSv1.3' });
  });

  test('TLS 1.2, and a handshake that takes its time', async t => {
    const authority = new Authority(t);
    const replica = await tiny(t);
    const front = await tlsFront(t, authority.issue(IP), replica.port,
      { wait: 400, maxVersion: 'TLSv1.2' });
    const limpet = await gateway(t, { replicas: [front.url], flags: ['--tls-ca', authority.file] });
    const session = await Session.open(limpet.url);
    assert.equal(await session.tool('whoami'), 'tiny');
    assert.equal(front.seen[0].version, 'TLSv1.2');
  });

  test('the roots of the system are believed without tls_ca', async t => {
    const authority = new Authority(t);
    const replica = await tiny(t);
    const front = await tlsFront(t, authority.issue(IP), replica.port);
    process.env.SSL_CERT_FILE = authority.file;
    const limpet = await gateway(t, { replicas: [front.url] });
    delete process.env.SSL_CERT_FILE;
    assert.equal(await (await Session.open(limpet.url)).tool('whoami'), 'tiny');
  });

  test('a certificate that signed itself is believed when it is named', async t => {
    const self = new Authority(t).issue(IP, { isSelf: true });
    const replica = await tiny(t);
    const front = await tlsFront(t, self, replica.port);
    const limpet = await gateway(t, { replicas: [front.url], flags: ['--tls-ca', self.file] });
    assert.equal(await (await Session.open(limpet.url)).tool('whoami'), 'tiny');
  });
});

suite('replicas that are not who they should be', () => {
  // what stands there -> [how it is made, what the log says]
  const PEERS = {
    'signed by itself': [(t, a, port) => tlsFront(t, a.issue(IP, { isSelf: true }), port),
      /nobody we trust has signed its certificate; name its CA with tls_ca/],
    'of an unknown CA': [(t, a, port) => tlsFront(t, new Authority(t).issue(IP), port),
      /nobody we trust has signed its certificate/],
    'for another name': [(t, a, port) => tlsFront(t, a.issue('DNS:example.com'), port),
      /the certificate is for another name/],
    'too old': [(t, a, port) => tlsFront(t, a.issue(IP, { days: [-3, -1] }), port),
      /the certificate is too old or too new/],
    'too new': [(t, a, port) => tlsFront(t, a.issue(IP, { days: [1, 3] }), port),
      /the certificate is too old or too new/],
    'plain http': [async (t, a, port) => ({ url: `https://127.0.0.1:${port}/mcp` }),
      /the TLS handshake failed/],
    'garbage': [t => plainPeer(t, socket => socket.end('no TLS here, nor anything else\n')),
      /the TLS handshake failed/],
    'silent': [t => plainPeer(t, () => {}), /no answer to the connection in time/],
  };
  for (const [what, [make, sentence]] of Object.entries(PEERS)) {
    test(`${what}: 503, no request, and a sentence in the log`, async t => {
      const authority = new Authority(t);
      const replica = await tiny(t);
      const peer = await make(t, authority, replica.port);
      const limpet = await gateway(t, { replicas: [peer.url], flags: ['--tls-ca', authority.file],
        config: { timeouts: { connect: '300ms' } } });
      const answer = await post(limpet.url, initialize());
      assert.equal(answer.status, 503, answer.text);
      await limpet.proc.says(sentence);
      assert.equal(replica.initializes, 0);
    });
  }

  test('a certificate that runs out is doubt; renewed, the sessions go on', async t => {
    const authority = new Authority(t);
    const replica = await tiny(t);
    const certificate = authority.issue(IP);
    const good = { ...certificate };
    const front = await tlsFront(t, certificate, replica.port);
    const limpet = await gateway(t, { replicas: [front.url],
      flags: ['--tls-ca', authority.file, '--gone-after', '60s'] });
    const session = await Session.open(limpet.url);
    assert.equal(await session.tool('count'), 'tiny 1');
    Object.assign(certificate, authority.issue(IP, { days: [-3, -1] }));
    front.cut();
    const answer = await session.ask('ping');
    assert.equal(answer.status, 503, answer.text);
    await limpet.proc.says(/is in doubt: the certificate is too old or too new/);
    Object.assign(certificate, good);
    await limpet.proc.says(/is up/);
    assert.equal(await session.tool('count'), 'tiny 2');
  });
});

suite('cuts', () => {
  const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n';

  // A body that the end of the connection ends: whole with close_notify only.
  for (const isWhole of [true, false]) {
    test(`an answer ended by ${isWhole ? 'close_notify is whole' : 'a cut is not'}`, async t => {
      const authority = new Authority(t);
      const peer = await tlsPeer(t, authority.issue(IP), (socket, below) => {
        socket.once('data', () => {
          socket.write(`${HEAD}half an answer`);
          setTimeout(() => { if (isWhole) socket.end(); else below.destroy(); }, 100);
        });
      });
      const limpet = await gateway(t,
        { replicas: [peer.url], flags: ['--tls-ca', authority.file] });
      const sent = send(limpet.url, { method: 'POST', headers: POST_HEADERS,
        body: request(1, 'tools/list') });
      if (isWhole) assert.equal((await sent).text, 'half an answer');
      else await assert.rejects(sent, /aborted|ECONNRESET|socket hang up/);
    });
  }
});

suite('much', () => {
  const MIB = 1 << 20;

  // Gives every body back, and tells when it began to come.
  async function echo(t) {
    const server = http.createServer((incoming, outgoing) => {
      outgoing.writeHead(200, { 'content-type': 'application/json' });
      incoming.pipe(outgoing);
    });
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
    t.after(() => { server.closeAllConnections(); server.close(); });
    return server.address().port;
  }

  test('3 MiB up and down, four at a time, to readers that wait', async t => {
    const authority = new Authority(t);
    const front = await tlsFront(t, authority.issue(IP), await echo(t));
    const limpet = await gateway(t, { replicas: [front.url], flags: ['--tls-ca', authority.file] });
    const one = async number => {
      const filler = Buffer.alloc(3 * MIB, String.fromCharCode(97 + number)).toString();
      const body = JSON.stringify({ jsonrpc: '2.0', id: number, method: 'tools/list', params: { filler } });
      const answer = await open(limpet.url, { method: 'POST', body,
        headers: { ...POST_HEADERS, 'content-length': body.length } });
      assert.equal(answer.status, 200);
      await sleep(300); /* the answer waits in every buffer on its way */
      const chunks = [];
      for await (const chunk of answer.body) chunks.push(chunk);
      assert.ok(Buffer.concat(chunks).equals(Buffer.from(body)));
    };
    await Promise.all([0, 1, 2, 3].map(one));
  });

  test('events come one by one, not when a record is full', async t => {
    const authority = new Authority(t);
    const peer = await tlsPeer(t, authority.issue(IP), socket => {
      socket.once('data', async () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n');
        for (let i = 0; i < 3; i++) {
          await sleep(200);
          socket.write(`data: {"n":${i}}\n\n`);
        }
        socket.end();
      });
    });
    const limpet = await gateway(t, { replicas: [peer.url], flags: ['--tls-ca', authority.file] });
    const answer = await open(limpet.url, { method: 'POST', headers: POST_HEADERS,
      body: request(1, 'tools/list') });
    const times = [];
    for await (const chunk of answer.body) {
      if (chunk.includes('"n":')) times.push(performance.now());
    }
    assert.equal(times.length, 3);
    assert.ok(times[1] - times[0] > 100 && times[2] - times[1] > 100, times.join());
  });
});

suite('the configuration', () => {
  test('check reads the file of tls_ca; show gives it and the URLs back', async t => {
    const authority = new Authority(t);
    const words = ['--tls-ca', authority.file, '--key-file', `${authority.dir}/key`,
      'https://MCP.example/x', 'https://[::1]:8443'];
    const shown = await run(LIMPET, ['config', 'show', ...words]);
    assert.equal(shown.code, 0, shown.stderr);
    assert.ok(shown.stdout.includes(`tls_ca: ${authority.file}\n`), shown.stdout);
    assert.match(shown.stdout, /https:\/\/mcp\.example:443\/x/);
    assert.match(shown.stdout, /https:\/\/\[::1\]:8443\/mcp/);
    const free = ['--listen', '127.0.0.1:1', '--admin', 'off'];
    const checked = await run(LIMPET, ['config', 'check', ...free, ...words]);
    assert.doesNotMatch(checked.stderr, /certificate/);
    for (const file of [`${authority.dir}/none.pem`, authority.config]) {
      const bad = await run(LIMPET, ['gateway', ...words.with(1, file)]);
      assert.equal(bad.code, 2, bad.stderr);
      assert.match(bad.stderr, /CA certificate/);
    }
  });
});

// The clients: each mishap is a sentence that says what to do.
suite('limpet inspect and limpet connect', () => {
  // what stands there -> [how it is made, the words after the URL, status, what is said]
  const CASES = {
    'a certificate of a named CA': [(t, a, port) => tlsFront(t, a.issue(IP), port),
      a => ['--cacert', a.file], 0, /^$/],
    'one signed by itself': [(t, a, port) => tlsFront(t, a.issue(IP, { isSelf: true }), port),
      () => [], 1, /nobody we trust has signed the certificate; name its CA with --cacert/],
    'one signed by itself, --insecure':
      [(t, a, port) => tlsFront(t, a.issue(IP, { isSelf: true }), port), () => ['--insecure'], 0,
        /--insecure: the server's certificate is not checked/],
    'one for another name': [(t, a, port) => tlsFront(t, a.issue('DNS:example.com'), port),
      a => ['--cacert', a.file], 1, /the certificate is for another name; use one of its names/],
    'one that is too old': [(t, a, port) => tlsFront(t, a.issue(IP, { days: [-3, -1] }), port),
      a => ['--cacert', a.file], 1, /too old or too new; renew it or set the clock/],
    'plain http': [async (t, a, port) => ({ url: `https://127.0.0.1:${port}/mcp` }), () => [], 1,
      /the TLS handshake failed; see whether that port speaks https/],
    'garbage': [t => plainPeer(t, socket => socket.end('no TLS here\n')), () => [], 1,
      /the TLS handshake failed/],
    'a slow handshake': [(t, a, port) => tlsFront(t, a.issue(IP), port, { wait: 700 }),
      a => ['--cacert', a.file], 0, /^$/],
    'a CA file that is not there': [(t, a, port) => tlsFront(t, a.issue(IP), port),
      () => ['--cacert', '/nowhere.pem'], 64, /--cacert: cannot read .*No such file/],
  };
  for (const [what, [make, words, status, sentence]] of Object.entries(CASES)) {
    test(`inspect: ${what}`, async t => {
      const authority = new Authority(t);
      const replica = await tiny(t);
      const { url } = await make(t, authority, replica.port);
      const { code, stdout, stderr } =
        await run(LIMPET, ['inspect', ...words(authority), url, 'tools']);
      assert.equal(code, status, stderr);
      assert.match(stderr.trim(), sentence);
      assert.equal(stdout.includes('whoami'), status === 0);
      assert.equal(replica.initializes, status === 0 ? 1 : 0);
    });
  }

  test('inspect: an answer that is cut in mid-stream', async t => {
    const authority = new Authority(t);
    const peer = await tlsPeer(t, authority.issue(IP), (socket, below) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n' +
          '{"jsonrpc":"2.0",');
        setTimeout(() => below.destroy(), 100);
      });
    });
    const { code, stderr } =
      await run(LIMPET, ['inspect', '--cacert', authority.file, peer.url, 'tools']);
    assert.notEqual(code, 0);
    assert.match(stderr, /cut|broke|ended|closed/);
  });

  for (const isNamed of [true, false]) {
    test(`connect: a server behind TLS, ${isNamed ? 'believed' : 'not believed'}`, async t => {
      const authority = new Authority(t);
      const replica = await tiny(t);
      const front = await tlsFront(t, authority.issue(IP), replica.port);
      const child = spawn(LIMPET,
        ['connect', ...(isNamed ? ['--cacert', authority.file] : []), front.url]);
      const ended = new Promise(resolve => child.once('close', resolve));
      t.after(() => child.kill('SIGKILL'));
      let said = '';
      let complaints = '';
      child.stdout.on('data', bytes => { said += bytes; });
      child.stderr.on('data', bytes => { complaints += bytes; });
      child.stdin.write(`${initialize()}\n`);
      await until(() => said.includes('\n'), 5000, 'an answer');
      child.stdin.end();
      const code = await ended;
      const answer = JSON.parse(said.slice(0, said.indexOf('\n')));
      if (isNamed) {
        assert.equal(answer.result.serverInfo.name, 'tiny');
        assert.equal(code, 0, complaints);
      } else {
        assert.match(answer.error.message, /name its CA with --cacert/);
      }
    });
  }
});
