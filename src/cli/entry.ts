// The program: everything real is handed in here, and nowhere else.
import { setFlagsFromString } from "node:v8";
import { main } from "./main.ts";
import { createProcessIo } from "./process/process-io.ts";

// What suits a program that rests for most of a minute and then works on thousands of objects. Left to itself, V8
// - lets the heap grow to four times what is alive before it looks for garbage, which is 50 MB that nobody needs;
// - lets the place for new objects grow from 1 MB to 16, three times over: 15 MB for a little less work;
// - forgets how to run what rested, and compiles it anew every minute;
// - shares the collection of so little young garbage among threads, which takes longer than to do it.
setFlagsFromString("--heap-growing-percent=60");
setFlagsFromString("--semi-space-growth-factor=1");
setFlagsFromString("--no-flush-bytecode");
setFlagsFromString("--no-parallel-scavenge");

const io = createProcessIo(process);
io.end(await main(process.argv.slice(2), process.env, io));
