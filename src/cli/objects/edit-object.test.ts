import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { type AdminServer, startAdminServer } from "../../../test/support/admin-server.ts";
import { applyDeployment } from "../../../test/support/deployment-messages.ts";
import { FakeIo } from "../../../test/support/fake-io.ts";
import { ObjectKind } from "../../gen/krane/admin/v1/admin_pb.ts";
import { main } from "../main.ts";
import { createEditedFile } from "../process/editor.ts";

const region = "local.dev";
const ref = { region, kind: ObjectKind.DEPLOYMENT, id: "d_1" };
let server: AdminServer;
let folder: string;
before(async () => {
  server = await startAdminServer();
  folder = await mkdtemp(join(tmpdir(), "krane-edit-test-"));
  await server
    .client()
    .applyEnvironment({ region, id: "env_1a2B3c4D", workspaceId: "ws_1a2B3c4D", projectId: "proj_1a2B3c4D" });
  await setImage("registry.example/web:1");
});
after(async () => {
  await server.stop();
  await rm(folder, { recursive: true });
});

async function setImage(image: string) {
  const value = applyDeployment({ deploymentId: "d_1", image });
  await server.client().applyObject({ region, spec: { spec: { case: "deployment", value } } });
}

/** Runs `krane edit` with that shell command as the editor. */
async function edit(editor: string, ...argv: readonly string[]) {
  const io = Object.assign(new FakeIo(), {
    openEditor: (name: string, command: string) => createEditedFile(name, { command, folder }),
  });
  const env = {
    KRANE_SERVER: server.url,
    KRANE_TOKEN: server.tokens.readWrite,
    KRANE_REGION: region,
    EDITOR: editor,
  };
  const code = await main(["edit", ...argv], env, io);
  return { code, stdout: io.stdout.text, stderr: io.stderr.text };
}

async function imageNow() {
  const { object } = await server.client().getObject({ ref });
  const spec = object?.spec?.spec;
  return spec?.case === "deployment" ? spec.value.image : undefined;
}

test("applies what the editor changed, and leaves no file behind", async () => {
  const { code, stdout, stderr } = await edit("sed -i s/web:1/web:2/", "deployment/web");
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^deployment\/d_1 configured/);
  assert.equal(await imageNow(), "registry.example/web:2");
  assert.deepEqual(await edit("true", "deployment", "d_1"), {
    code: 0,
    stdout: "",
    stderr: "deployment/d_1 was not changed\n",
  });
});

test("shows mistakes above the document and opens the editor again", async () => {
  const script = `f() { if grep -q Rejected "$1"; then cp "$1" ${folder}/seen; sed -i 's/replicas: x/replicas: 7/' "$1"; else sed -i 's/replicas: .*/replicas: x/' "$1"; fi; }; f`;
  const { code, stderr } = await edit(script, "deployment", "d_1");
  assert.equal(code, 0, stderr);
  assert.match(
    await readFile(join(folder, "seen"), "utf8"),
    /^# deployment\/d_1 in region.*\n# Rejected: line \d+: replicas must be a whole number/,
  );
  const { object } = await server.client().getObject({ ref });
  assert.equal(object?.spec?.spec.case === "deployment" && object.spec.spec.value.replicas, 7);
});

test("applies nothing over what somebody else changed, and keeps the file", async () => {
  let path = "";
  const io = Object.assign(new FakeIo(), {
    async openEditor(name: string, command: string) {
      const file = await createEditedFile(name, { command, folder });
      path = file.path;
      await setImage("registry.example/web:theirs");
      return file;
    },
  });
  const env = {
    KRANE_SERVER: server.url,
    KRANE_TOKEN: server.tokens.readWrite,
    KRANE_REGION: region,
    KRANE_EDITOR: "sed -i 's/replicas: .*/replicas: 9/'",
  };
  assert.equal(await main(["edit", "deployment", "d_1"], env, io), 1);
  assert.equal(
    io.stderr.text,
    `krane: deployment/d_1 was changed by somebody else meanwhile\nkrane: your changes are in ${path}\n`,
  );
  assert.match(await readFile(path, "utf8"), /replicas: 9/);
  assert.equal(await imageNow(), "registry.example/web:theirs");
  await rm(dirname(path), { recursive: true });
});

test("ends with the editor's failure, and keeps kind and id", async () => {
  const failed = await edit("false", "deployment", "d_1");
  assert.deepEqual(
    [failed.code, /the editor ended with 1; nothing was changed/.test(failed.stderr)],
    [1, true],
  );
  const script = `f() { if grep -q 'must stay deployment and d_1' "$1"; then : > "$1"; else sed -i 's/^id: .*/id: d_2/' "$1"; fi; }; f`;
  const renamed = await edit(script, "deployment", "d_1");
  assert.deepEqual([renamed.code, renamed.stderr], [0, "deployment/d_1 was not changed\n"]);
  assert.deepEqual(
    (await readdir(folder)).filter((name) => name !== "seen"),
    [],
  );
});

test("needs a terminal, unless an editor was chosen", async () => {
  const io = Object.assign(new FakeIo(), { openEditor: () => assert.fail("nobody sees it") });
  const env = { KRANE_SERVER: server.url, KRANE_TOKEN: server.tokens.readWrite, KRANE_REGION: region };
  assert.equal(await main(["edit", "deployment", "d_1"], env, io), 64);
  assert.match(io.stderr.text, /^krane: no terminal for an editor; set KRANE_EDITOR/);
});
