// Free ports on 127.0.0.1. A port is bound once to see that it is free and never handed out twice
// by one process; parallel test files are kept apart by the kernel's own choice of ports.
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const given = new Set();

export async function freePort() {
  for (;;) {
    const port = await new Promise((resolve, reject) => {
      const server = net.createServer().once('error', reject);
      server.listen(0, '127.0.0.1', () => {
        const { port } = server.address();
        server.close(() => resolve(port));
      });
    });
    if (!given.has(port)) {
      given.add(port);
      return port;
    }
  }
}

export const freePorts = n => Promise.all(Array.from({ length: n }, freePort));

function canConnect(port) {
  return new Promise(resolve => {
    const socket = net.connect(port, '127.0.0.1');
    socket.once('connect', () => { socket.destroy(); resolve(true); });
    socket.once('error', () => resolve(false));
  });
}

// Waits until something accepts on the port. `isDead` ends the wait early.
export async function portOpen(port, { within = 15000, isDead = () => false } = {}) {
  const end = performance.now() + within;
  while (performance.now() < end && !isDead()) {
    if (await canConnect(port)) return;
    await sleep(20);
  }
  throw new Error(`nothing accepts on port ${port}`);
}
