// Certificates made by openssl on the spot, and peers that speak TLS by Node in front of a plain
// server: what a certificate holds and how a connection behaves is the test's to choose.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import tls from 'node:tls';
import { folder } from './gateway.mjs';

const DAY = 86_400_000;

const CONFIG = dir => `
[req]
distinguished_name = dn
prompt = no
[dn]
CN = test
[ca]
default_ca = own
[own]
new_certs_dir = ${dir}
database = ${dir}/index
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[is_ca]
basicConstraints = critical,CA:TRUE
`;

// YYYYMMDDHHMMSSZ, as openssl wants it.
const stamp = time => new Date(time).toISOString().replace(/[-:T]|\.\d+/g, '');

// A CA of the test's own. `file` is its certificate.
export class Authority {
  constructor(t) {
    this.dir = folder(t);
    this.count = 0;
    this.config = path.join(this.dir, 'config');
    writeFileSync(path.join(this.dir, 'index'), '');
    writeFileSync(this.config, CONFIG(this.dir));
    this.file = this.#path('ca.pem');
    this.#openssl('req', '-x509', ...this.#newKey('ca.key'), '-out', this.file,
      '-extensions', 'is_ca', '-days', '1');
  }

  #path(name) { return path.join(this.dir, name); }

  #openssl(command, ...args) {
    execFileSync('openssl', [command, '-config', this.config, ...args], { stdio: 'pipe' });
  }

  #newKey(name) {
    return ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout',
      this.#path(name)];
  }

  // A certificate for `names`, like 'DNS:localhost,IP:127.0.0.1': { key, cert, file }. `days` is
  // when it begins and ends, from now; isSelf: signed by itself.
  issue(names, { days: [begin, end] = [-1, 1], isSelf = false } = {}) {
    const name = `c${this.count++}`;
    const file = this.#path(`${name}.pem`);
    const extensions = this.#path(`${name}.ext`);
    writeFileSync(extensions, `subjectAltName = ${names}\nbasicConstraints = CA:FALSE\n`);
    this.#openssl('req', ...this.#newKey(`${name}.key`), '-new', '-out', this.#path('request'));
    const signer = isSelf ? ['-selfsign', '-keyfile', this.#path(`${name}.key`)]
      : ['-cert', this.file, '-keyfile', this.#path('ca.key')];
    this.#openssl('ca', '-batch', '-notext', ...signer, '-extfile', extensions, '-in',
      this.#path('request'), '-out', file, '-startdate', stamp(Date.now() + begin * DAY),
      '-enddate', stamp(Date.now() + end * DAY));
    return { key: readFileSync(this.#path(`${name}.key`)), cert: readFileSync(file), file };
  }
}

// A port on 127.0.0.1 whose connections are given to `serve`; { port, url }.
export async function plainPeer(t, serve, { host = '127.0.0.1' } = {}) {
  const open = new Set();
  const server = net.createServer(socket => {
    open.add(socket);
    socket.on('error', () => {}).on('close', () => open.delete(socket));
    serve(socket);
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  const { port } = server.address();
  const cut = () => { for (const socket of open) socket.destroy(); };
  return { port, cut, url: `https://${host}:${port}/mcp` };
}

// The same with TLS: `serve` gets the TLS socket and the plain one below it. `seen` are the names
// and protocols that clients asked for. Each connection is shown what `certificate` holds then.
export async function tlsPeer(t, certificate, serve, { host, wait = 0, ...options } = {}) {
  const seen = [];
  const shake = below => {
    const { key, cert } = certificate;
    const socket = new tls.TLSSocket(below,
      { isServer: true, key, cert, ALPNProtocols: ['h2', 'http/1.1'], ...options });
    socket.on('error', () => {});
    socket.once('secure', () => {
      seen.push({ alpn: socket.alpnProtocol, name: socket.servername, version: socket.getProtocol() });
      serve(socket, below);
    });
  };
  const peer = await plainPeer(t, below => setTimeout(() => shake(below), wait), { host });
  return Object.assign(peer, { seen });
}

// TLS in front of a plain server on 127.0.0.1.
export const tlsFront = (t, certificate, port, options) => tlsPeer(t, certificate, socket => {
  const inner = net.connect(port, '127.0.0.1');
  inner.on('error', () => socket.destroy());
  socket.on('close', () => inner.destroy());
  socket.pipe(inner).pipe(socket);
}, options);
