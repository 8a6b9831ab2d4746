// The clock that tests move.
export { FakeClock } from "@krane/kube-apiserver/testing";
