// Configuration: flags, the file, and above all mistakes. Each is told in one plain sentence that says
// where it is and what to do, with exit status 2; wrong usage is 64.
import assert from 'node:assert/strict';
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { suite, test } from 'node:test';
import { folder, gateway, keyFile, newKey } from './lib/gateway.mjs';
import { send } from './lib/http.mjs';
import { freePort, freePorts } from './lib/ports.mjs';
import { LIMPET, run, start } from './lib/proc.mjs';
import { urls } from './lib/replicas.mjs';
import { post, request, Session, SESSION } from './lib/rpc.mjs';
import { tinies, tiny } from './lib/tiny.mjs';

const URL_OK = 'http://127.0.0.1:3001/mcp';

const limpet = (args, within = 5000) => run(LIMPET, args, { within });

// Runs `limpet gateway` with a file and expects refusal; returns what it said.
async function refused(t, yaml, flags = []) {
  const file = path.join(folder(t), 'limpet.yaml');
  writeFileSync(file, yaml);
  const result = await limpet(['gateway', '-c', file, '--key-file', keyFile(t), ...flags]);
  assert.equal(result.code, 2, `status ${result.code} ${result.signal}: ${result.stderr}`);
  assert.equal(result.stdout, '');
  return result.stderr.replaceAll(file, 'FILE');
}

// Every line is a sentence for a person.
function assertPlain(text) {
  for (const line of text.trimEnd().split('\n')) {
    assert.ok(line.length < 400, line);
    assert.doesNotMatch(line, /LP_E|errno|0x[0-9a-f]|assert|\bnull\b|\.c:\d/i);
  }
}

suite('mistakes in the file', () => {
  const REPLICAS = `replicas: [${URL_OK}]\n`;
  // the file -> what the message must say
  const MISTAKES = {
    'replicas: [htp://x]\n': /FILE:1: replicas\[0\]: "htp:\/\/x".*http:\/\/host:port\/path/,
    'replicas: [https//x/mcp]\n': /FILE:1: .*https:\/\/host/,
    [`tls_ca: /nowhere.pem\n${REPLICAS}`]: /CA certificates in \/nowhere.pem: No such file/,
    'replicas: ["http://127.0.0.1:99999/mcp"]\n': /FILE:1: .*99999/,
    'replicas: ["http://10.0.0.256/mcp"]\n': /FILE:1: .*10\.0\.0\.256/,
    'listen: 127.0.0.1:8080\n': /replica/,
    [`listn: 127.0.0.1:1\n${REPLICAS}`]: /FILE:1: listn: unknown key.*did you mean listen/,
    [`${REPLICAS}listen: nowhere\n`]: /FILE:2: listen: "nowhere".*host:port/,
    [`${REPLICAS}listen: 127.0.0.1:70000\n`]: /FILE:2: listen: /,
    [`${REPLICAS}threads: 0\n`]: /FILE:2: threads: "0"/,
    [`${REPLICAS}threads: many\n`]: /FILE:2: threads: "many"/,
    [`${REPLICAS}balance: fair\n`]: /FILE:2: balance: "fair".*least_sessions.*round_robin/,
    [`${REPLICAS}on_owner_lost: recover\n`]: /FILE:2: on_owner_lost: .*later|release/,
    [`${REPLICAS}gone_after: 3\n`]: /FILE:2: gone_after: "3".*/,
    [`${REPLICAS}gone_after: 3 parsecs\n`]: /FILE:2: gone_after: "3 parsecs"/,
    [`${REPLICAS}body_limit: 4MB?\n`]: /FILE:2: body_limit: "4MB\?"/,
    [`${REPLICAS}timeouts: {connect: 1s, frist_byte: 2s}\n`]: /FILE:2: .*did you mean first_byte/,
    [`${REPLICAS}path: mcp\n`]: /FILE:2: path: "mcp".*\//,
    [`${REPLICAS}store: {sqlite: x}\n`]: /FILE:2: store.*later/,
    [`${REPLICAS}replicas: [http://b/mcp]\n`]: /FILE:2: replicas: given twice/,
    [`replicas: [${URL_OK}, ${URL_OK}]\n`]: /two replicas are named 127\.0\.0\.1:3001\/mcp/,
    [`servers:\n  - ${REPLICAS}  - ${REPLICAS}`]: /servers\[0\] and servers\[1\]/,
    'replicas: [\n': /FILE:\d: this is not valid YAML/,
    '- a\n- b\n': /mapping/,
    '': /replica/,
  };
  for (const [yaml, message] of Object.entries(MISTAKES)) {
    test(JSON.stringify(yaml.replace(REPLICAS, '…')), async t => {
      const said = await refused(t, yaml);
      assert.match(said, message);
      assertPlain(said);
    });
  }

  test('all mistakes are told, not only the first', async t => {
    const said = await refused(t, 'listn: x\nreplicas: [htp://x]\nthreads: 0\nbalance: fair\n');
    for (const line of [1, 2, 3, 4]) assert.match(said, new RegExp(`FILE:${line}: `));
  });

  test('a file that is not there, or is a folder', async t => {
    for (const file of ['/nowhere/limpet.yaml', folder(t)]) {
      const { code, stderr } = await limpet(['gateway', '-c', file]);
      assert.equal(code, 2, stderr);
      assert.ok(stderr.includes(file), stderr);
      assertPlain(stderr);
    }
  });
});

suite('mistakes in the flags', () => {
  const USAGE = {
    'no command': [[], /usage|help/i],
    'an unknown command': [['gatway'], /gatway/],
  };
  for (const [what, [args, message]] of Object.entries(USAGE)) {
    test(`${what}: status 64`, async () => {
      const { code, stderr } = await limpet(args);
      assert.equal(code, 64, stderr);
      assert.match(stderr, message);
      assertPlain(stderr);
    });
  }

  const MISTAKES = {
    'no replica': [[], /replica|URL/],
    'an unknown flag': [['--lisen', '127.0.0.1:1', URL_OK], /--lisen.*did you mean --listen/],
    'a flag without its value': [[URL_OK, '--listen'], /--listen/],
    'a flag given twice': [['--threads', '1', '--threads', '2', URL_OK], /--threads.*twice/],
    'a URL that is none': [['127.0.0.1:3001'], /127\.0\.0\.1:3001.*http:\/\//],
    'a bad value': [['--comment-every', 'often', URL_OK], /--comment-every.*often/],
  };
  for (const [what, [args, message]] of Object.entries(MISTAKES)) {
    test(`${what}: one sentence, status 64`, async t => {
      const { code, stderr } = await limpet(['gateway', '--key-file', keyFile(t), ...args]);
      assert.equal(code, 64, stderr);
      assert.match(stderr, message);
      assertPlain(stderr);
    });
  }

  test('mistakes in the file and in the flags: all are told, the file decides: status 2', async t => {
    const said = await refused(t, `threads: 0\nreplicas: [${URL_OK}]\n`, ['--lisen', 'x']);
    assert.match(said, /FILE:1: threads/);
    assert.match(said, /--lisen/);
    const { code } = await limpet(['config', 'check', '--lisen', 'x', URL_OK]);
    assert.equal(code, 64);
  });

  for (const args of [['--help'], ['gateway', '--help'], ['replica', '--help'], ['demo', '--help']]) {
    test(`${args.join(' ')}: 80 columns, an example, status 0`, async () => {
      const { code, stdout, stderr } = await limpet(args);
      assert.equal(code, 0, stderr);
      assert.equal(stderr, '');
      for (const line of stdout.split('\n')) assert.ok(line.length <= 80, line);
      assert.match(stdout, /limpet gateway|limpet replica|limpet demo/);
      assert.match(stdout, /example/i);
    });
  }

  test('--version', async () => {
    const { code, stdout } = await limpet(['--version']);
    assert.equal(code, 0);
    assert.match(stdout, /^limpet \d+\.\d+\.\d+/);
  });
});

suite('what can go wrong at the start', () => {
  test('a port in use, client and admin', async t => {
    const taken = net.createServer();
    await new Promise(resolve => taken.listen(0, '127.0.0.1', resolve));
    t.after(() => taken.close());
    const { port } = taken.address();
    for (const flag of ['--listen', '--admin']) {
      const other = flag === '--listen' ? '--admin' : '--listen';
      const { code, stderr } = await limpet(['gateway', flag, `127.0.0.1:${port}`, other,
        `127.0.0.1:${await freePort()}`, '--key-file', keyFile(t), URL_OK]);
      assert.notEqual(code, 0);
      assert.ok([1, 2].includes(code), `${code}: ${stderr}`);
      assert.match(stderr, new RegExp(`127\\.0\\.0\\.1:${port}.*(in use|used)`));
      assertPlain(stderr);
    }
  });

  test('a second gateway on the same port is refused, the first is not disturbed', async t => {
    const replicas = urls(await tinies(t, 1));
    const first = await gateway(t, { replicas });
    const { code, stderr } = await limpet(['gateway', '--listen', `127.0.0.1:${first.port}`,
      '--admin', 'off', '--key-file', keyFile(t), ...replicas]);
    assert.notEqual(code, 0);
    assert.match(stderr, /in use|used/);
    for (let i = 0; i < 5; i++) await Session.open(first.url);
  });

  test('a key file that others can read, is not base64, is short, or is empty', async t => {
    const open = keyFile(t, newKey());
    chmodSync(open, 0o644);
    const cases = [[open, /others|0600|chmod/], [keyFile(t, 'not base64!'), /base64/],
      [keyFile(t, Buffer.alloc(16).toString('base64')), /32/]];
    for (const [file, message] of cases) {
      const { code, stderr } = await limpet(['gateway', '--listen', `127.0.0.1:${await freePort()}`,
        '--admin', 'off', '--key-file', file, URL_OK]);
      assert.equal(code, 2, stderr);
      assert.ok(stderr.includes(file), stderr);
      assert.match(stderr, message);
      assert.ok(!stderr.includes(readFileSync(file, 'utf8').trim()), 'the key itself is not shown');
      assertPlain(stderr);
    }
  });

  test('a key file where no file can be made', async t => {
    const { code, stderr } = await limpet(['gateway', '--listen', `127.0.0.1:${await freePort()}`,
      '--admin', 'off', '--key-file', '/proc/nowhere/key', URL_OK], 2000);
    assert.ok([1, 2].includes(code), `${code} ${stderr}`);
    assert.match(stderr, /\/proc\/nowhere/);
    assertPlain(stderr);
  });

  test('a missing key file is made, for its owner only, and kept', async t => {
    const replicas = urls(await tinies(t, 1));
    const one = await gateway(t, { replicas });
    assert.ok(existsSync(one.key));
    assert.equal(statSync(one.key).mode & 0o777, 0o600);
    const key = readFileSync(one.key, 'utf8');
    assert.equal(Buffer.from(key.trim(), 'base64').length, 32);
    await one.restart();
    assert.equal(readFileSync(one.key, 'utf8'), key);
  });

  test('without --key-file the key is in the state folder', async t => {
    const state = folder(t);
    const [port, admin] = await freePorts(2);
    const proc = start(t, 'limpet gateway', LIMPET, ['gateway', '--listen', `127.0.0.1:${port}`,
      '--admin', `127.0.0.1:${admin}`, URL_OK], { env: { XDG_STATE_HOME: state, HOME: state } });
    await proc.listening(port);
    assert.equal(existsSync(path.join(state, 'limpet/key')), true, proc.log);
  });
});

suite('what works', () => {
  test('a file with servers, flags win over it', async t => {
    const [a] = await tinies(t, 1);
    const b = await tiny(t, 'b1');
    const [port, other, admin] = await freePorts(3);
    const file = path.join(folder(t), 'limpet.yaml');
    writeFileSync(file, `# two servers
listen: 127.0.0.1:${other}
admin: off
gone_after: 2s
servers:
  - name: a
    path: /a/mcp
    replicas:
      - ${a.url}
  - name: b
    path: /b/mcp
    comment_every: off
    replicas: [{name: first, url: "${b.url}", weight: 2}]
`);
    const proc = start(t, 'limpet gateway', LIMPET, ['gateway', '-c', file, '--listen',
      `127.0.0.1:${port}`, `--admin=127.0.0.1:${admin}`, '--key-file', keyFile(t)]);
    await proc.listening(port);
    assert.equal(await (await Session.open(`http://127.0.0.1:${port}/a/mcp`)).tool('whoami'), 'r1');
    assert.equal(await (await Session.open(`http://127.0.0.1:${port}/b/mcp`)).tool('whoami'), 'b1');
    assert.equal((await send(`http://127.0.0.1:${admin}/live`)).status, 200);
    await assert.rejects(send(`http://127.0.0.1:${other}/a/mcp`), /ECONNREFUSED/);
  });

  test('several listen addresses, IPv6 too; a replica URL without a path', async t => {
    const [replica] = await tinies(t, 1);
    const [one, two, admin] = await freePorts(3);
    const proc = start(t, 'limpet gateway', LIMPET, ['gateway', '--listen', `127.0.0.1:${one}`,
      '--listen', `[::1]:${two}`, '--admin', `127.0.0.1:${admin}`, '--key-file', keyFile(t),
      `http://127.0.0.1:${replica.port}`]);
    await proc.listening(one);
    const session = await Session.open(`http://127.0.0.1:${one}/mcp`);
    session.url = `http://[::1]:${two}/mcp`;
    assert.equal(await session.tool('whoami'), 'r1');
  });

  test('flags of the server: path, age of a ticket by file, plain agents', async t => {
    const limpet = await gateway(t, { replicas: urls(await tinies(t, 1)), path: '/x/y',
      server: { plain_404_agents: ['curl/'] } });
    const answer = await post(limpet.url, request(1, 'ping'),
      { [SESSION]: 'gone', 'user-agent': 'curl/8' });
    assert.match(answer.headers['content-type'], /^text\/plain/);
  });
});

suite('what a check foresees', () => {
  const check = (...flags) => limpet(['config', 'check', ...flags]);

  test('a password in an address is never repeated', async t => {
    const file = path.join(folder(t), 'limpet.yaml');
    writeFileSync(file, 'replicas: ["http://u:the-secret@127.0.0.1/mcp"]\n');
    for (const flags of [['-c', file], ['http://u:the-secret@127.0.0.1/mcp']]) {
      const { code, stdout, stderr } = await check(...flags);
      assert.ok(code);
      assert.match(stderr, /"http:\/\/\*\*\*@127\.0\.0\.1\/mcp" is not a replica address/);
      assert.doesNotMatch(stdout + stderr, /the-secret/);
    }
  });

  test('an admin address that others reach does not tell the status there', async t => {
    const admin = `0.0.0.0:${await freePort()}`;
    const flags = ['--listen', `127.0.0.1:${await freePort()}`, '--admin', admin,
      '--key-file', keyFile(t), URL_OK];
    const { code, stdout } = await check(...flags);
    assert.equal(code, 0);
    assert.match(stdout, /Note: the admin address is no loopback address.*\/status and \/metrics/);
    const proc = start(t, 'gateway', LIMPET, ['gateway', ...flags]);
    await proc.says(/answers \/live and \/ready, but not \/status and \/metrics/);
    assert.doesNotMatch(proc.log, /admin on \S+\/status/);
  });

  test('no key file can be made in /proc, and no file is read without end', async t => {
    const proc = await check('--key-file', '/proc/x/key', URL_OK);
    assert.equal(proc.code, 2);
    assert.match(proc.stderr, /cannot make the key file \/proc\/x\/key/);
    const zero = await check('-c', '/dev/zero');
    assert.equal(zero.code, 2);
    assert.match(zero.stderr, /longer than 1048576 bytes/);
  });
});
