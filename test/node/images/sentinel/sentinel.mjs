import { createServer } from "node:http";

createServer((request, response) => {
  const isHealthCheck = request.url === "/_unkey/internal/health";
  response.writeHead(isHealthCheck ? 200 : 404);
  response.end(isHealthCheck ? "healthy" : "no such page");
}).listen(8040);

// As the first process of a container it would not end at a signal without this.
process.on("SIGTERM", () => process.exit(0));
