// The small commands: key, config, status, and help; and what the admin listener tells whom.
import assert from 'node:assert/strict';
import { chmodSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { suite, test } from 'node:test';
import { folder, gateway as startGateway, keyFile, newKey } from './lib/gateway.mjs';
import { send } from './lib/http.mjs';
import { freePort, freePorts } from './lib/ports.mjs';
import { LIMPET, run, start as startProc } from './lib/proc.mjs';
import { urls } from './lib/replicas.mjs';
import { post, request, Session } from './lib/rpc.mjs';
import { tinies } from './lib/tiny.mjs';

// Ended with a signal that lets it end by itself, before the library's SIGKILL: so its end is part
// of the test, and what it ran is counted by a coverage build.
function start(t, ...args) {
  let proc;
  t.after(() => proc?.stop());
  return proc = startProc(t, ...args);
}

async function gateway(t, settings) {
  let proxy;
  t.after(() => proxy?.stop());
  return proxy = await startGateway(t, settings);
}

const limpet = (args, options) => run(LIMPET, args, { within: 10_000, ...options });

async function said(code, args, message, options) {
  const result = await limpet(args, options);
  assert.equal(result.code, code, result.stderr);
  assert.equal(result.stdout, '');
  assert.match(result.stderr, message);
}

suite('limpet key', () => {
  test('new prints a fresh key each time', async () => {
    const keys = [await limpet(['key', 'new']), await limpet(['key', 'new'])];
    for (const { code, stdout } of keys) {
      assert.equal(code, 0);
      assert.match(stdout, /^[A-Za-z0-9+/]{43}=\n$/);
      assert.equal(Buffer.from(stdout, 'base64').length, 32);
    }
    assert.notEqual(keys[0].stdout, keys[1].stdout);
  });

  test('list tells ids, the first seals, and no key is shown', async t => {
    const keys = [newKey(), newKey()];
    const file = keyFile(t, '# two of them', ...keys);
    const { code, stdout } = await limpet(['key', 'list', '--key-file', file]);
    assert.equal(code, 0);
    assert.match(stdout, /^\S+\n {2}[0-9a-f]{8} {2}seals and opens\n {2}[0-9a-f]{8} {2}opens\n$/);
    const json = JSON.parse((await limpet(['key', 'list', '--json', '--key-file', file])).stdout);
    assert.deepEqual(json.keys.map(key => key.seals), [true, false]);
    for (const { id } of json.keys) assert.ok(stdout.includes(id));
    for (const key of keys) assert.ok(!stdout.includes(key.slice(0, 10)));
  });

  test('list looks where the gateway looks', async t => {
    const state = folder(t);
    const env = { XDG_STATE_HOME: state, HOME: state };
    await said(1, ['key', 'list'], /no key file \S+\/limpet\/key yet; limpet gateway makes it/,
      { env });
    const port = await freePort();
    const proc = start(t, 'limpet gateway', LIMPET, ['gateway', '--listen', `127.0.0.1:${port}`,
      '--admin', 'off', 'http://127.0.0.1:1/mcp'], { env });
    await proc.listening(port);
    const { stdout } = await limpet(['key', 'list'], { env });
    const [, id] = await proc.says(/key ([0-9a-f]{8}) \(seals\)/);
    assert.ok(stdout.includes(id));
    assert.equal(statSync(path.join(state, 'limpet/key')).mode & 0o777, 0o600);
  });

  test('bad key files: where and what to do, status 2', async t => {
    const key = newKey();
    await said(2, ['key', 'list', '--key-file', keyFile(t, key, 'x')], /:2: this is no key/);
    await said(2, ['key', 'list', '--key-file', keyFile(t, key, key)], /:2: .* already/);
    await said(2, ['key', 'list', '--key-file', keyFile(t, '# none')], /there is no key in it/);
    const many = Array.from({ length: 17 }, newKey);
    await said(2, ['key', 'list', '--key-file', keyFile(t, ...many)], /:17: too many keys/);
  });

  test('the line that help shows makes a file for its owner only', async t => {
    const { stdout } = await limpet(['key', '--help']);
    const line = /^ {2}(.*limpet key new >>.*)$/m.exec(stdout)[1];
    const file = path.join(folder(t), 'key');
    const command = line.replace('/var/lib/limpet/key', file).replace('limpet key', `"${LIMPET}" key`);
    assert.equal((await run('sh', ['-c', `umask 022; ${command}`])).code, 0);
    assert.equal(statSync(file).mode & 0o777, 0o600);
    assert.equal((await limpet(['key', 'list', '--key-file', file])).code, 0);
  });

  for (const args of [[], ['old'], ['new', 'list'], ['--bad'], ['list', '--key-file']]) {
    test(`key ${args.join(' ')}: status 64`, () => said(64, ['key', ...args], /^limpet: .+\n$/));
  }
});

suite('limpet config', () => {
  test('check: right, or every problem and status 2', async t => {
    const flags = ['--key-file', keyFile(t, newKey()), '--listen', `127.0.0.1:${await freePort()}`,
      '--admin', 'off'];
    const { code, stdout, stderr: nothing } = await limpet(
      ['config', 'check', ...flags, 'http://a/mcp', 'http://b/mcp']);
    assert.equal(code, 0, nothing);
    assert.equal(stdout, 'The configuration is right: 1 server, 2 replicas.\n');
    const file = path.join(folder(t), 'limpet.yaml');
    writeFileSync(file, 'replicas: [http://a/mcp]\nthreads: 0\nlistn: x\n');
    const { code: refused, stderr } = await limpet(['config', 'check', '-c', file]);
    assert.equal(refused, 2);
    assert.equal(stderr.trimEnd().split('\n').length, 2);
  });

  test('check looks at key file, log file and addresses, and changes nothing there', async t => {
    const dir = folder(t);
    const [key, log, socket] = ['key', 'log', 'a.sock'].map(name => path.join(dir, name));
    const port = await freePort();
    const args = ['config', 'check', '--key-file', key, '--log-file', log, '--listen',
      `127.0.0.1:${port}`, '--admin', `unix:${socket}`, 'http://a/mcp'];
    const { code, stdout, stderr } = await limpet(args);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^The key file \S+\/key is not there yet; limpet gateway makes it\.\nThe conf/);
    assert.deepEqual(readdirSync(dir), []);
    const taken = net.createServer();
    await new Promise(resolve => taken.listen(port, '127.0.0.1', resolve));
    t.after(() => taken.close());
    const busy = await limpet(args);
    assert.equal(busy.code, 0, busy.stderr);
    assert.match(busy.stdout, /Note: cannot listen on 127\.0\.0\.1:\d+: the address is in use; if that/);
    assert.match(busy.stdout, /gateway to be restarted, all is well, else stop the other program/);
  });

  test('check tells all that is wrong with them, and what to do', async t => {
    const open = keyFile(t, newKey());
    chmodSync(open, 0o644);
    const wrong = [['--key-file', open, /key file \S+ can be read or changed by others.*run: chmod 600/],
      ['--log-file', '/nowhere/log', /cannot make a file in \/nowhere: .*; name a log file that can/],
      ['--listen', '192.0.2.1:80', /192\.0\.2\.1:80: this machine has no such address; use one/],
      ['--admin', `unix:${open}`, /unix:\S+: there is a file that is no socket; remove it, or/]];
    const flags = wrong.flatMap(([flag, value]) => [flag, value]);
    const { code, stdout, stderr } = await limpet(['config', 'check', ...flags, 'http://a/mcp']);
    assert.equal(code, 2, stderr);
    assert.equal(stdout, '');
    for (const [, , message] of wrong) assert.match(stderr, message);
    assert.equal(stderr.trimEnd().split('\n').length, wrong.length);
    for (const [key, message] of [[keyFile(t, 'x'), /:1: this is no key/],
      [`${open}/key`, /cannot make the key file \S+\/key\/key: Not a directory; name another place/]]) {
      await said(2, ['config', 'check', '--key-file', key, '--listen',
        `127.0.0.1:${await freePort()}`, '--admin', 'off', 'http://a/mcp'], message);
    }
  });

  test('show prints what a second show takes as it is', async t => {
    const first = await limpet(['config', 'show', '--threads', '2', 'http://a/mcp']);
    assert.equal(first.code, 0);
    const file = path.join(folder(t), 'limpet.yaml');
    writeFileSync(file, first.stdout);
    assert.equal((await limpet(['config', 'show', '-c', file])).stdout, first.stdout);
  });

  test('without check or show: status 64', () => said(64, ['config'], /say limpet config check/));
});

suite('limpet status', () => {
  test('for people and as JSON', async t => {
    const replicas = await tinies(t, 2);
    const proxy = await gateway(t, { config: { admin: 'off' }, servers: [
      { name: 'tools', path: '/mcp', sse_path: '/sse', replicas: urls(replicas) },
      { name: 'dead', path: '/dead', replicas: ['http://127.0.0.1:1/mcp'] }] });
    await Session.open(proxy.url);
    const admin = ['--admin', `127.0.0.1:${proxy.adminPort}`];
    const { code, stdout } = await limpet(['status', ...admin]);
    assert.equal(code, 0);
    assert.match(stdout, /^Limpet \d+\.\d+\.\d+, ready, up \d+ s\nListens {3}127\.0\.0\.1:\d+\n/);
    assert.match(stdout, /\nKeys {6}[0-9a-f]{8} \(seals\)\n/);
    assert.match(stdout, /\nServer tools at \/mcp\n {2}up +\d sessions? +127\.0\.0\.1:\d+\/mcp\n/);
    assert.match(stdout, /\nServer dead at \/dead\n/);
    const status = JSON.parse((await limpet(['status', '--json', ...admin])).stdout);
    assert.equal(status.ready, true);
    assert.deepEqual(status.listen, [`127.0.0.1:${proxy.port}`]);
    assert.deepEqual(status.servers.map(server => server.name), ['tools', 'dead']);
    assert.equal(status.servers[0].sse_path, '/sse');
    const sessions = status.servers[0].replicas.map(replica => replica.sessions);
    assert.equal(sessions[0] + sessions[1], 1);
    assert.equal(status.servers[0].replicas.length, 2);
    assert.equal(status.servers[1].replicas.length, 1);
  });

  test('an admin listener on a unix socket', async t => {
    const socket = `unix:${path.join(folder(t), 'admin.sock')}`;
    await said(1, ['status', '--admin', socket], /no gateway answers on unix:.*No such file/);
    const proc = start(t, 'limpet gateway', LIMPET, ['gateway', '--listen',
      `127.0.0.1:${await freePort()}`, '--admin', socket, '--key-file', keyFile(t),
      'http://127.0.0.1:1/mcp']);
    await proc.says(/admin on unix:\S+\/admin\.sock\n/);
    await proc.says(/listening on/);
    for (const flag of [['--admin', socket], [`--admin=${socket}`, '--json']]) {
      const { code, stdout, stderr } = await limpet(['status', ...flag]);
      assert.equal(code, 0, stderr);
      assert.match(stdout, /Limpet \d+\.\d+\.\d+, ready|"ready":true/);
    }
    await said(64, ['status', '--admin', 'unix:'], /a path of 1 to 107 bytes must follow/);
    await said(64, ['status', '--admin', `unix:/${'x'.repeat(107)}`], /a path of 1 to 107 bytes/);
  });

  test('nobody there, a stranger there, nonsense: a sentence and status 1', async t => {
    const port = await freePort();
    await said(1, ['status', '--admin', `127.0.0.1:${port}`], /no gateway answers .*refused/);
    for (const form of ['', '/', '/status'])
      await said(1, ['status', '--admin', `http://127.0.0.1:${port}${form}`],
        new RegExp(`no gateway answers on 127.0.0.1:${port} .*refused`));
    const stranger = http.createServer((_, response) => response.writeHead(404).end('who?'));
    const babbler = net.createServer(socket => socket.end('hello\r\n'));
    for (const server of [stranger, babbler]) {
      await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
      t.after(() => server.close());
      await said(1, ['status', '--admin', `127.0.0.1:${server.address().port}`],
        /is no admin listener of Limpet/);
    }
    await said(1, ['status', '--admin', 'no-such-host.invalid:1'], /is not known/);
    await said(64, ['status', '--admin', 'here'], /is no address/);
    await said(64, ['status', 'now'], /a word too many/);
    await said(64, ['status', '--quick'], /no flag --quick/);
  });

  test('an answer that does not come: status 1', async t => {
    const mute = net.createServer(() => {});
    await new Promise(resolve => mute.listen(0, '127.0.0.1', resolve));
    t.after(() => mute.close());
    await said(1, ['status', '--admin', `127.0.0.1:${mute.address().port}`], /timed out/);
  });
});

suite('the admin listener', () => {
  test('a loopback listener takes loopback names only', async t => {
    const proxy = await gateway(t, { replicas: ['http://127.0.0.1:1/mcp'] });
    const ask = headers => send(`http://127.0.0.1:${proxy.adminPort}/status`, { headers });
    assert.equal((await ask({ host: 'localhost:99' })).status, 200);
    assert.equal((await ask({ host: 'evil.example' })).status, 403);
    assert.equal((await ask({ origin: 'http://evil.example' })).status, 403);
    const head = await send(`http://127.0.0.1:${proxy.adminPort}/live?x=1`, { method: 'HEAD' });
    assert.deepEqual([head.status, head.text, head.headers['content-length']], [200, '', '3']);
    const wrong = await send(`http://127.0.0.1:${proxy.adminPort}/live`, { method: 'DELETE' });
    assert.deepEqual([wrong.status, wrong.headers.allow], [405, 'GET, HEAD']);
  });

  test('nonsense is answered 400; a kept connection serves many', async t => {
    const proxy = await gateway(t, { replicas: ['http://127.0.0.1:1/mcp'] });
    const talk = bytes => new Promise((resolve, reject) => {
      const socket = net.connect(proxy.adminPort, '127.0.0.1', () => socket.end(bytes));
      let text = '';
      socket.on('data', data => { text += data; }).on('close', () => resolve(text));
      socket.on('error', reject);
    });
    assert.match(await talk('nonsense\r\n\r\n'), /^HTTP\/1\.1 400 Bad Request\r\n/);
    const get = 'GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const posted = 'POST /live HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi';
    assert.equal((await talk(get + posted + get)).match(/HTTP\/1\.1 (200|405)/g).length, 3);
  });

  test('another listener tells /live and /ready only', async t => {
    const [port, admin] = await freePorts(2);
    const proc = start(t, 'limpet gateway', LIMPET, ['gateway', '--listen', `127.0.0.1:${port}`,
      '--admin', `0.0.0.0:${admin}`, '--key-file', keyFile(t), 'http://127.0.0.1:1/mcp']);
    await proc.listening(port);
    const status = async name => (await send(`http://127.0.0.1:${admin}/${name}`)).status;
    assert.deepEqual([await status('live'), await status('ready')], [200, 200]);
    assert.deepEqual([await status('metrics'), await status('status'), await status('x')],
      [403, 403, 404]);
    await said(1, ['status', '--admin', `127.0.0.1:${admin}`], /loopback admin listener only/);
  });

  test('a large fleet: long answers come whole, to slow readers too', async t => {
    const replicas = Array.from({ length: 1000 }, (_, r) => `http://10.1.${r >> 8}.${r & 255}`);
    const servers = Array.from({ length: 10 },
      (_, s) => ({ name: `s${s}`, path: `/s${s}`, replicas }));
    const proxy = await gateway(t, { servers });
    const status = (await proxy.admin('/status')).json;
    assert.equal(status.servers.flatMap(server => server.replicas).length, 10_000);
    const command = `"${LIMPET}" status --admin 127.0.0.1:${proxy.adminPort}`;
    const { stdout } = await run('sh', ['-c', `${command} | grep -c ' sessions '`]);
    assert.equal(stdout, '10000\n');
    // Ten answers are more than any socket buffer takes.
    const ask = () => new Promise((resolve, reject) => {
      const socket = net.connect(proxy.adminPort, '127.0.0.1').on('error', reject);
      const request = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(10);
      socket.pause().write(request, () => setTimeout(resolve, 500, socket));
    });
    (await ask()).destroy();
    const slow = (await ask()).end(); // its own side is over, it still reads
    let text = '';
    for await (const chunk of slow.setEncoding('latin1')) text += chunk;
    assert.equal(text.match(/^limpet_replica_up\{/gm).length, 100_000);
    assert.equal((await proxy.admin('/live')).status, 200);
  });

  test('/ready says which server has no replica left', async t => {
    const replicas = await tinies(t, 1);
    const proxy = await gateway(t, { servers: [
      { name: 'good', path: '/good', replicas: urls(replicas) },
      { name: 'dead', path: '/dead', gone_after: '200ms',
        replicas: ['http://127.0.0.1:1/mcp'] }] });
    let answer;
    for (let i = 0; i < 50 && answer?.status !== 503; i++) {
      await post(proxy.at('/dead'), request(1, 'ping'));
      answer = await proxy.admin('/ready');
      await new Promise(resolve => setTimeout(resolve, 50));
    }
    assert.equal(answer.text, 'server dead: every replica is gone\n');
  });
});

suite('the gateway as a process', () => {
  test('SIGHUP: the log is opened again, and it says what it does not do', async t => {
    const proxy = await gateway(t, { replicas: ['http://127.0.0.1:1/mcp'] });
    proxy.proc.kill('SIGHUP');
    await proxy.proc.says(/not read again in this release/);
    assert.equal((await proxy.admin('/live')).status, 200);
  });

  test('a unix socket to listen on', async t => {
    const socketPath = path.join(folder(t), 'limpet.sock');
    const proc = start(t, 'limpet gateway', LIMPET, ['gateway', '--listen', `unix:${socketPath}`,
      '--admin', 'off', '--key-file', keyFile(t), ...urls(await tinies(t, 1))]);
    await proc.says(/listening on unix:/);
    const status = await new Promise((resolve, reject) => {
      http.get({ socketPath, path: '/nothing', headers: { host: 'localhost' } },
        response => resolve(response.resume().statusCode)).on('error', reject);
    });
    assert.equal(status, 404);
  });

  test('a log file that cannot be opened: status 2', t => {
    const args = ['--log-file', '/nowhere/limpet.log', '--key-file', keyFile(t)];
    return said(2, ['gateway', ...args, 'http://127.0.0.1:1/mcp'], /\/nowhere\/limpet\.log/);
  });

  test('many replicas are not all named at the start', async t => {
    const replicas = Array.from({ length: 20 }, (_, i) => `http://10.0.0.${i + 1}:3000/mcp`);
    const proxy = await gateway(t, { replicas });
    await proxy.proc.says(/20 replicas: 10\.0\.0\.1:3000\/mcp, .*10\.0\.0\.8:3000\/mcp, and more/);
  });

  test('too few descriptors are told of', async t => {
    const port = await freePort();
    const proc = start(t, 'limpet gateway', 'sh', ['-c', 'ulimit -n 300; exec "$@"', 'sh', LIMPET,
      'gateway', '--listen', `127.0.0.1:${port}`, '--admin', 'off', '--key-file', keyFile(t),
      'http://127.0.0.1:1/mcp']);
    await proc.says(/may open 300 files; \d+ are needed/);
  });
});

suite('help', () => {
  for (const command of ['gateway', 'sidecar', 'demo', 'replica', 'probe', 'inspect', 'connect', 'status',
    'config', 'key']) {
    test(`${command}: the same by --help, -h and help`, async () => {
      const { code, stdout } = await limpet([command, '--help']);
      assert.equal(code, 0);
      assert.match(stdout, /^Usage: limpet /);
      assert.match(stdout, /\nExamples?:\n {2}limpet /);
      assert.ok(stdout.split('\n').every(line => line.length <= 80));
      assert.equal((await limpet(['help', command])).stdout, stdout);
      assert.equal((await limpet([command, '-h'])).stdout, stdout);
    });
  }

  test('gateway --help names every page of the admin listener', async () => {
    const { stdout } = await limpet(['gateway', '--help']);
    for (const page of ['/live', '/ready', '/metrics', '/status']) assert.ok(stdout.includes(page));
  });

  test('limpet help; an unknown command; an output that takes nothing', async () => {
    const { code, stdout } = await limpet(['help']);
    assert.equal(code, 0);
    assert.equal((await limpet(['-h'])).stdout, stdout);
    await said(64, ['help', 'gatway'], /no command "gatway"/);
    const full = await run('sh', ['-c', `"${LIMPET}" --help > /dev/full`]);
    assert.equal(full.code, 1);
    assert.match(full.stderr, /the output could not be written/);
  });
});
