// krane in a container: an agent reads its own parts, and any other command the whole program.
await import(process.argv[2] === "agent" ? "./agent/krane.mjs" : "./program.mjs");
