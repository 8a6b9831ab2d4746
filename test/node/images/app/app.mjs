// A tenant's program: answers HTTP on its port with what a test wants to know about its process.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { release } from "node:os";

const pages = {
  "/": () => "hello",
  "/env": () => JSON.stringify(process.env),
  // gVisor's kernel has a release of its own.
  "/kernel": () => `${release()}\n${readFileSync("/proc/version", "utf8")}`,
};

createServer((request, response) => {
  const page = pages[request.url ?? ""];
  response.writeHead(page ? 200 : 404);
  response.end(page ? page() : "no such page");
}).listen(Number(process.env.PORT ?? 8080));

// As the first process of a container it would not end at a signal without this.
for (const signal of ["SIGTERM", "SIGINT", "SIGQUIT"]) {
  process.on(signal, () => {
    console.log(`ends at ${signal}`);
    process.exit(0);
  });
}
