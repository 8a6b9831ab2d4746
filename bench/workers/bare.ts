// A Node process that does nothing: the minimum memory of any program.
import { finish, takeTask } from "./parent.ts";
import { residentMb } from "./resources.ts";

takeTask();
finish({ residentMb: residentMb() });
