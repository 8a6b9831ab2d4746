import assert from "node:assert/strict";
import { test } from "node:test";
import { isPrivateHost } from "./insecure-url.ts";

function hostOf(url: string): string {
  return new URL(url).hostname;
}

test("plain HTTP is allowed for loopback, cluster names, single labels and private addresses", () => {
  const urls = [
    "http://localhost:7091",
    "http://api.localhost",
    "http://127.0.0.1",
    "http://127.8.9.1",
    "http://0x7f.1",
    "http://[::1]:80",
    "http://vault:8060",
    "http://VAULT",
    "http://vault.unkey.svc",
    "http://vault.unkey.svc.",
    "http://vault.unkey.svc.cluster.local:8060",
    "http://10.0.0.1",
    "http://172.16.0.1",
    "http://172.31.255.255",
    "http://192.168.1.1",
    "http://169.254.1.1",
    "http://[fd00::1]",
    "http://[fc12:3456::1]",
    "http://[fe80::1]",
    "http://[febf::1]",
    "http://[::ffff:10.0.0.1]",
  ];
  for (const url of urls) assert.ok(isPrivateHost(hostOf(url)), url);
});

test("plain HTTP is rejected for every other host", () => {
  const urls = [
    "http://example.com",
    "http://svc.example.com",
    "http://vault.svc.example.com",
    "http://vault.unkey.svc.cluster.local.example.com",
    "http://notsvc.cluster.local",
    "http://uz.",
    "http://8.8.8.8",
    "http://172.15.0.1",
    "http://172.32.0.1",
    "http://192.169.0.1",
    "http://100.64.0.1",
    "http://0.0.0.0",
    "http://134744072",
    "http://[2001:db8::1]",
    "http://[fec0::1]",
    "http://[fc::1]",
    "http://[::ffff:8.8.8.8]",
    "http://10.0.0.1.example.com",
  ];
  for (const url of urls) assert.ok(!isPrivateHost(hostOf(url)), url);
});
