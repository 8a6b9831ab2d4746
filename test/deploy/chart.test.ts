// The chart through the pinned Helm: the manifests in deploy/manifests are what it gives, values that make no sense are
// refused with the field, and krane accepts every configuration that it writes.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { allSettings, defaultAudience } from "../../src/config/settings.ts";
import { allServerSettings } from "../../src/server/config/server-settings.ts";
import { helm, resolveGoTool } from "../../tools/go-tool.ts";
import { lintChart, renderChart, renderManifests } from "../../tools/helm-chart.ts";
import { configProblems, type ManifestObject } from "../support/deployed-parts.ts";
import { projectFiles, projectRoot, readProjectFile } from "../support/project-files.ts";

const never = new AbortController().signal;
const binary = await resolveGoTool(helm, process.env, { report: (line) => console.error(line) }, never);
const skip = binary.kind === "missing" && `helm: ${binary.what}`;
const path = binary.kind === "ready" ? binary.path : "";
const examples = projectFiles(/^examples\/values\/.*\.yaml$/);

/** The objects that the chart gives; settings as `--set` takes them. */
async function objectsWith(...values: readonly string[]): Promise<readonly ManifestObject[]> {
  const text = await renderChart(path, values, never);
  return parseAllDocuments(text)
    .map((document) => document.toJS() as ManifestObject | null)
    .filter((object) => object !== null);
}

function set(...settings: readonly string[]): readonly string[] {
  return settings.flatMap((setting) => ["--set", setting]);
}

const registry = set("agent.registry.url=registry.example", "agent.registry.username=puller");

describe("deploy/chart/krane", { skip }, () => {
  test("deploy/manifests is what the chart gives", async () => {
    const files = await renderManifests(path, never);
    const written = projectFiles(/^deploy\/manifests\//).map((name) => name.replace("deploy/manifests/", ""));
    assert.deepEqual([...files.keys()].sort(), written.sort(), "run `make deploy`");
    for (const [name, text] of files)
      assert.equal(readProjectFile(`deploy/manifests/${name}`), text, `${name}: run \`make deploy\``);
  });

  test("helm finds nothing wrong with it", async () => {
    await lintChart(path, [], never);
    for (const name of examples) await lintChart(path, ["--values", `${projectRoot}/${name}`], never);
  });

  for (const name of examples)
    test(`krane accepts the configurations that ${name} makes`, async () => {
      const objects = await objectsWith("--values", `${projectRoot}/${name}`);
      assert.ok(objects.some(({ kind }) => kind === "ConfigMap"));
      assert.deepEqual(configProblems(objects), []);
    });

  test("any setting can be given, is written as TOML has it, and wins", async () => {
    const config = {
      agent: null,
      deletion: { budget_objects: 5, budget_fraction: 0.5 },
      isolation: { registries: ["a.example", "b.example"] },
      registry: { username: 'a"quoted"\\<name>' },
      scheduler: { scrape: true },
    };
    const objects = await objectsWith(...registry, "--set-json", `agent.config=${JSON.stringify(config)}`);
    assert.deepEqual(configProblems(objects), []);
    const text = objects.find(({ kind }) => kind === "ConfigMap")?.data?.["krane.toml"] ?? "";
    for (const line of ["budget_objects = 5", "budget_fraction = 0.5", "scrape = true"])
      assert.ok(text.split("\n").includes(line), line);
    assert.ok(text.includes('registries = ["a.example","b.example"]'));
    assert.ok(text.includes('username = "a\\"quoted\\"\\\\<name>"'));
    assert.ok(!text.includes("agent-token"));
  });

  test("the alerts and the dashboard are installed as they are in their files, and only if they are wanted", async () => {
    const kinds = async (...values: readonly string[]) =>
      (await objectsWith(...values)).map(({ kind, metadata }) => `${kind} ${metadata?.name}`);
    const own = ["PrometheusRule krane-monitoring", "ConfigMap krane-monitoring"];
    const plain = await kinds();
    assert.deepEqual(
      own.filter((each) => plain.includes(each)),
      [],
    );
    const objects = await objectsWith(
      ...set("prometheusRule.enabled=true", "prometheusRule.labels.team=a", "grafanaDashboard.enabled=true"),
    );
    const [rule, dashboard] = own.map(
      (each) =>
        objects.find(({ kind, metadata }) => `${kind} ${metadata?.name}` === each) ?? assert.fail(each),
    ) as [ManifestObject & { spec?: unknown }, ManifestObject];
    const file = (name: string) => readProjectFile(`deploy/chart/krane/files/${name}`);
    assert.deepEqual(rule.spec, parse(file("alerts.yaml")));
    assert.equal(rule.metadata?.labels?.["team"], "a");
    assert.deepEqual(
      JSON.parse(dashboard.data?.["krane.json"] ?? ""),
      JSON.parse(file("grafana-dashboard.json")),
    );
    assert.equal(dashboard.metadata?.labels?.["grafana_dashboard"], "1");
  });

  test("a region of the bucket is written only if it is given", async () => {
    const s3 = set(
      "vault.s3.bucket=keys",
      "vault.s3.url=https://s3.example.com",
      "vault.s3.accessKeyId=krane",
    );
    const textWith = async (...values: readonly string[]) => {
      const objects = await objectsWith(...s3, ...values);
      assert.deepEqual(configProblems(objects), []);
      return objects
        .flatMap(({ data }) => data?.["krane.toml"] ?? [])
        .find((text) => text.includes("[vault.s3]"));
    };
    assert.doesNotMatch((await textWith()) ?? "", /region/);
    assert.match((await textWith(...set("vault.s3.region=eu-west-3"))) ?? "", /^region = "eu-west-3"$/m);
  });

  test("rights come with what needs them", async () => {
    const roles = async (...values: readonly string[]) =>
      (await objectsWith(...values))
        .filter(({ kind }) => kind === "ClusterRole")
        .map(({ metadata }) => metadata?.name);
    const alone = set("vault.enabled=false");
    assert.deepEqual(await roles(), ["krane", "krane-secrets"]);
    assert.deepEqual(await roles(...alone), ["krane"]);
    assert.deepEqual(await roles(...alone, ...registry), ["krane", "krane-registry"]);
    assert.deepEqual(await roles(...alone, ...set("agent.logs.enabled=true")), ["krane", "krane-logs"]);
    assert.deepEqual(await roles(...alone, ...set("agent.config.logs.enabled=true")), [
      "krane",
      "krane-logs",
    ]);
    assert.deepEqual(
      await roles(...alone, ...set("agent.gateway.namespace=gateway,agent.gateway.name=public")),
      ["krane", "krane-gateway"],
    );
    assert.deepEqual(await roles(...set("agent.enabled=false")), []);
  });

  test("the right to record orders comes with the scheduler, in the namespace of krane's own objects only", async () => {
    const places = async (...values: readonly string[]) =>
      (await objectsWith(...values))
        .filter(({ kind, metadata }) => kind?.startsWith("Role") && metadata?.name === "krane-scheduler")
        .map(({ kind, metadata }) => [kind, metadata?.namespace]);
    const scheduler = set("agent.config.scheduler.token_file=/run/secrets/krane/scheduler-token");
    assert.deepEqual(await places(), []);
    assert.deepEqual(await places(...set("agent.config.scheduler.scrape=true")), []);
    assert.deepEqual(await places(...scheduler), [
      ["Role", "krane"],
      ["RoleBinding", "krane"],
    ]);
    const state = set("agent.config.kubernetes.namespace=krane-state");
    assert.deepEqual(await places(...scheduler, ...state), [
      ["Role", "krane-state"],
      ["RoleBinding", "krane-state"],
    ]);
    const policy = JSON.stringify(await objectsWith(...state));
    assert.ok(policy.includes('in [\\"default\\", \\"krane\\", \\"krane-state\\"]'));
    assert.ok(policy.includes('variables.place == \\"krane-state\\"'));
  });

  test("the agent's account is held to what krane writes, under the names of the release", async () => {
    const policies = async (...values: readonly string[]) =>
      (await objectsWith(...values)).filter(({ kind }) => kind?.startsWith("ValidatingAdmissionPolicy"));
    const [policy, evictions, binding, bindingOfEvictions, ...more] = await policies(
      "--namespace",
      "elsewhere",
    );
    assert.deepEqual(more, []);
    const evictionText = JSON.stringify(evictions);
    assert.ok(evictionText.includes('username == \\"system:serviceaccount:elsewhere:krane\\"'));
    assert.ok(evictionText.includes('in [\\"default\\", \\"sentinel\\", \\"elsewhere\\"]'));
    assert.deepEqual((bindingOfEvictions as { readonly spec?: unknown }).spec, {
      policyName: evictions?.metadata?.name,
      paramRef: { selector: {}, parameterNotFoundAction: "Deny" },
      validationActions: ["Deny"],
    });
    const text = JSON.stringify(policy);
    assert.ok(text.includes('username == \\"system:serviceaccount:elsewhere:krane\\"'));
    assert.ok(text.includes('in [\\"default\\", \\"elsewhere\\"]'));
    assert.deepEqual((binding as { readonly spec?: unknown }).spec, {
      policyName: policy?.metadata?.name,
      validationActions: ["Deny"],
    });
    const labelled = JSON.stringify(await policies(...set("agent.admission.namespaceLabels={team}")));
    assert.ok(labelled.includes('\\"kubernetes.io/metadata.name\\",\\"team\\"]'));
    const audience = JSON.stringify(await policies(...set("agent.config.secrets.audience=pods")));
    assert.ok(text.includes(`== \\"${defaultAudience}\\"))`) && audience.includes('== \\"pods\\"))'));
    assert.deepEqual(await policies(...set("agent.admission.enabled=false")), []);
    assert.deepEqual(await policies(...set("agent.enabled=false")), []);
  });

  const open = set("agent.isolation.runtimeClass=", "agent.isolation.networkPolicy=best-effort");

  test("without sandbox and policies, the agent and its admission policy agree, also if its configuration says so", async () => {
    const inConfig = JSON.stringify({ runtime_class: "", network_policy: "best-effort" });
    for (const values of [open, ["--set-json", `agent.config.isolation=${inConfig}`]]) {
      const objects = await objectsWith(...values);
      assert.deepEqual(configProblems(objects), []);
      const text = objects.find(({ kind }) => kind === "ConfigMap")?.data?.["krane.toml"] ?? "";
      assert.match(text, /^\[isolation\]\nnetwork_policy = "best-effort"\nruntime_class = ""$/m);
      const admission = JSON.stringify(objects.find(({ kind }) => kind === "ValidatingAdmissionPolicy"));
      assert.ok(admission.includes('runtimeClassName.orValue(\\"gvisor\\") == \\"gvisor\\"'));
    }
    const strict = JSON.stringify(await objectsWith());
    assert.ok(strict.includes('runtimeClassName.orValue(\\"\\") == \\"gvisor\\"'));
  });

  test("best effort leaves out policies only where the cluster does not know them", async () => {
    const policies = async (...values: readonly string[]) =>
      (await objectsWith(...values)).filter(({ apiVersion }) => apiVersion?.startsWith("cilium.io/")).length;
    const known = ["CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"].flatMap((kind) => [
      "--api-versions",
      `cilium.io/v2/${kind}`,
    ]);
    assert.equal(await policies(), 5);
    assert.equal(await policies(...open), 0);
    assert.equal(await policies(...open, ...known), 5);
  });

  test("a PostgreSQL for trials has a password of its own, which only it and the server get", async () => {
    const objects = await objectsWith(...set("trialPostgres.enabled=true"));
    assert.deepEqual(configProblems(objects), []);
    const [secret, ...others] = objects.filter(({ kind }) => kind === "Secret");
    assert.deepEqual(others, []);
    const { password = "", "database-url": url } =
      (secret as { stringData?: Readonly<Record<string, string>> }).stringData ?? {};
    assert.match(password, /^\w{32}$/);
    assert.equal(url, `postgres://krane:${password}@krane-postgres.krane.svc.cluster.local:5432/krane`);
    const holders = objects.filter((object) =>
      JSON.stringify(object).includes('"secretName":"krane-postgres"'),
    );
    assert.deepEqual(holders.map(({ kind, metadata }) => `${kind} ${metadata?.name}`).sort(), [
      "Deployment krane-server",
      "StatefulSet krane-postgres",
    ]);
    const policy = objects.find(
      ({ kind, metadata }) => kind === "CiliumNetworkPolicy" && metadata?.name === "krane-postgres",
    );
    assert.match(JSON.stringify(policy), /component":"server"/);
    assert.ok((await objectsWith()).every(({ kind }) => kind !== "Secret" && kind !== "StatefulSet"));
  });

  test("no secret goes into a ConfigMap", async () => {
    const secretsOf = (settings: readonly { readonly path: string }[]) =>
      settings.filter((setting) => "file" in setting);
    const ofAgent = secretsOf(allSettings);
    const secrets = {
      agent: ofAgent,
      vault: ofAgent.filter((setting) => setting.path.startsWith("vault.")),
      server: secretsOf(allServerSettings),
    };
    for (const [part, settings] of Object.entries(secrets)) {
      assert.ok(settings.length >= 3);
      for (const { path: setting } of settings)
        await assert.rejects(
          renderChart(path, set(`${part}.config.${setting}=not-a-secret`), never),
          new RegExp(`${part}\\.config: ${setting.replaceAll(".", "\\.")} cannot be set here`),
        );
    }
  });

  test("a vault serves cleartext only without a certificate, and says so", async () => {
    const settings = async (...values: readonly string[]) => {
      const objects = await objectsWith(...values);
      assert.deepEqual(configProblems(objects), []);
      const vault = objects.find(
        ({ kind, metadata }) => kind === "ConfigMap" && metadata?.name === "krane-vault",
      );
      return vault?.data?.["krane.toml"] ?? "";
    };
    assert.match(await settings(), /^allow_insecure = true$/m);
    const withTls = await settings(...set("vault.tlsSecret=certificate"));
    assert.match(withTls, /^cert_file = /m);
    assert.doesNotMatch(withTls, /allow_insecure/);
  });

  test("a server may be open in cleartext if the values say that TLS ends before it", async () => {
    const open = set("server.service.type=LoadBalancer");
    await objectsWith(...open, ...set("server.config.server.allow_insecure=true"));
    await objectsWith(...open, ...set("server.tlsSecret=certificate"));
  });

  const refused: readonly (readonly [values: readonly string[], reason: RegExp])[] = [
    [set("agnet.enabled=true"), /additional properties 'agnet' not allowed/],
    [set("server.enabled=false"), /agent\.controlPlane\.url is required/],
    [set("vault.replicas=2"), /vault\.replicas: more than one needs vault\.s3/],
    [set("vault.s3.bucket=keys"), /vault\/s3\/url/],
    [set("agent.registry.url=registry.example"), /agent\/registry\/username/],
    [set("agent.secret="), /agent\/secret/],
    [set("server.replicas=0"), /server\/replicas/],
    [set("agent.replicas=0"), /agent\/replicas/],
    [set("agent.config.lease=auto"), /agent\.replicas: more than one needs lease = "required"/],
    [set("agent.isolation.runtimeClass=runc"), /agent\/isolation\/runtimeClass/],
    [set("agent.isolation.networkPolicy=none"), /agent\/isolation\/networkPolicy/],
    [
      set("trialPostgres.enabled=true", "server.enabled=false", "agent.controlPlane.url=https://a.example"),
      /trialPostgres\.enabled needs server\.enabled/,
    ],
    [
      set("server.service.type=LoadBalancer"),
      /server\.tlsSecret is required .* admin API is on the same port/,
    ],
    [set("server.service.type=NodePort"), /server\.tlsSecret is required/],
    [set("cilium.components.serverFromEntities={host,world}"), /server\.tlsSecret is required/],
    [set("agent.config.rpc_port=8071"), /agent\.config: rpc_port cannot be set here/],
    [set("agent.config.tls.cert_file=/a"), /agent\.config: tls cannot be set here/],
    [set("agent.config.listen_host=127.0.0.1"), /agent\.config: listen_host cannot be set here/],
    [set("agent.config.advertise_address=10.0.0.1"), /advertise_address cannot be set here/],
    [set("vault.config.listen_host=127.0.0.1"), /vault\.config: listen_host cannot be set here/],
    [set("vault.config.rpc_port=8061"), /vault\.config: rpc_port cannot be set here/],
    [set("server.config.server.listen=[::]:1"), /server\.config: server\.listen cannot be set here/],
    ...["agent", "server", "vault"].map(
      (part) =>
        [
          set(`${part}.config.observability.metrics.prometheus_port=0`),
          new RegExp(`${part}\\.config: observability\\.metrics\\.prometheus_port cannot be set here`),
        ] as const,
    ),
    [
      set("agent.admission.namespaceLabels={pod-security.kubernetes.io/enforce}"),
      /agent\/admission\/namespaceLabels/,
    ],
  ];
  for (const [values, reason] of refused)
    test(`it refuses ${values.filter((value) => value !== "--set").join(" ")}`, async () => {
      await assert.rejects(renderChart(path, values, never), reason);
    });
});
