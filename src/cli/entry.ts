// The program: everything real is handed in here, and nowhere else.
import { setFlagsFromString } from "node:v8";
import { main } from "./main.ts";
import { createProcessIo } from "./process/process-io.ts";

// Left to itself, V8 lets the heap grow to four times what is alive before it looks for garbage: while
// thousands of objects come at once, that is 50 MB which nobody needs. Looking earlier costs a few
// collections of 20 ms, mostly on other threads.
setFlagsFromString("--heap-growing-percent=30");

const io = createProcessIo(process);
io.end(await main(process.argv.slice(2), process.env, io));
