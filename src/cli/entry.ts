// The program: everything real is handed in here, and nowhere else.
import { main } from "./main.ts";
import { createProcessIo } from "./process-io.ts";

const io = createProcessIo(process);
io.end(await main(process.argv.slice(2), process.env, io));
