// Real balancers in front of real replicas: HAProxy and nginx, each with a configuration of a few
// lines, and limpet's own sample server behind them.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { folder } from './gateway.mjs';
import { freePort } from './ports.mjs';
import { LIMPET, start } from './proc.mjs';

// `limpet replica`, `count` times; their addresses as "127.0.0.1:PORT".
export async function limpetReplicas(t, count, flags = []) {
  return Promise.all(Array.from({ length: count }, async (_, i) => {
    const port = await freePort();
    const proc = start(t, `replica ${i}`, LIMPET,
      ['replica', '--listen', `127.0.0.1:${port}`, '--name', `R${i}`, ...flags]);
    await proc.listening(port);
    return `127.0.0.1:${port}`;
  }));
}

const HAPROXY_HEAD = `global
  maxconn 2000
defaults
  mode http
  option http-no-delay
  timeout connect 2s
  timeout client 60s
  timeout server 60s
`;

// HAProxy; `backend` holds lines of the one backend, `frontend` of the one frontend. `server(i)`
// adds words to the line of server i.
export async function haproxy(t, servers, { frontend = '', backend = '', server = () => '', more = '',
  mode = 'http' } = {}) {
  const port = await freePort();
  const file = path.join(folder(t), 'haproxy.cfg');
  const lines = servers.map((at, i) => `  server s${i} ${at} ${server(i)}`).join('\n');
  writeFileSync(file, `${HAPROXY_HEAD}
frontend f
  mode ${mode}
  bind 127.0.0.1:${port}
  ${frontend}
  default_backend b
backend b
  mode ${mode}
  ${backend}
${lines}
${more}
`);
  const proc = start(t, 'haproxy', 'haproxy', ['-db', '-f', file]);
  await proc.listening(port);
  return `http://127.0.0.1:${port}/mcp`;
}

// nginx; `location` holds lines of the one location, `upstream` of the one upstream, `server` of the
// one server.
export async function nginx(t, servers, { location = '', upstream = '', server = '' } = {}) {
  const port = await freePort();
  const dir = folder(t);
  const file = path.join(dir, 'nginx.conf');
  writeFileSync(file, `daemon off;
master_process off;
pid ${dir}/pid;
error_log ${dir}/error.log;
events { worker_connections 1000; }
http {
  access_log off;
  client_body_temp_path ${dir}/body; proxy_temp_path ${dir}/proxy;
  fastcgi_temp_path ${dir}/f; uwsgi_temp_path ${dir}/u; scgi_temp_path ${dir}/s;
  upstream u { ${upstream} ${servers.map(at => `server ${at};`).join(' ')} }
  server {
    listen 127.0.0.1:${port};
    ${server}
    location / { proxy_pass http://u; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host $http_host; ${location} }
  }
}
`);
  const proc = start(t, 'nginx', 'nginx', ['-e', `${dir}/error.log`, '-c', file]);
  await proc.listening(port);
  return `http://127.0.0.1:${port}/mcp`;
}
