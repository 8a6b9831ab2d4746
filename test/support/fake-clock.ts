// The clock that tests move.
export { FakeClock } from "../../src/dev/kube-apiserver/testing.ts";
