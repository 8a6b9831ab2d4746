// A Node process that does nothing: the memory that no program can go below.
import { finish, takeTask } from "./parent.ts";
import { residentMb } from "./resources.ts";

takeTask();
finish({ residentMb: residentMb() });
