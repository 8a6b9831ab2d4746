// The steps that create and migrate the tables: a list that is only ever appended to. Steps are additive, so that an older server
// beside a newer one keeps working. A step that needs exclusive table locks takes all of them first; see migrations.ts.

/** A step runs at once; or in batches, each continuing after the previous one, until nothing is left. */
export type Migration = string | { readonly eachBehind: string };

/**
 * An index on a table that may be large and that others write to. It is built after its step without blocking them, which
 * takes more than one transaction, so it is built again if that was interrupted.
 */
export interface LateIndex {
  /** The number of the step that adds what it is on. */
  readonly afterStep: number;
  /** The number of the first step that no longer needs it; absent if it stays. */
  readonly untilStep?: number;
  readonly name: string;
  /** What follows its name in CREATE INDEX. */
  readonly definition: string;
}

export const lateIndexes: readonly LateIndex[] = [
  { afterStep: 8, name: "objects_bucket", definition: "ON objects (region, kind, bucket)" },
  {
    afterStep: 8,
    untilStep: 10,
    name: "objects_unhashed",
    definition: "ON objects (region) WHERE content_hash IS NULL",
  },
  { afterStep: 11, name: "objects_app", definition: "ON objects (region, app_id) WHERE app_id IS NOT NULL" },
];

/** A power of numerics may be rounded. */
const digestModulus = String(1n << 256n);

export const steps: readonly Migration[] = [
  `
  CREATE TABLE regions (
    name       text PRIMARY KEY,
    counter    bigint NOT NULL DEFAULT 0,
    ordinal    bigint GENERATED ALWAYS AS IDENTITY
  );

  -- The spec is kept as protobuf, which preserves fields that this server does not know.
  -- "format" says how to read it; a server that does not know the number leaves the row alone.
  CREATE TABLE objects (
    region        text NOT NULL REFERENCES regions (name),
    kind          text NOT NULL,
    id            text NOT NULL,
    name          text NOT NULL,
    desired       text NOT NULL,
    format        smallint NOT NULL,
    spec          bytea NOT NULL,
    deployment_id text,
    version       bigint NOT NULL,
    PRIMARY KEY (region, kind, id),
    CONSTRAINT objects_name UNIQUE (region, kind, name)
  );
  -- Partial, because the columns of a full unique index count as key columns: every change
  -- of a row would then have to wait for the reports on it.
  CREATE UNIQUE INDEX objects_version ON objects (region, version) WHERE version > 0;
  CREATE INDEX objects_stream ON objects (region, kind, version);

  -- Separate from regions, whose rows are locked by every change of desired state.
  CREATE TABLE agents (
    region          text PRIMARY KEY REFERENCES regions (name),
    heartbeat_at_ms bigint,
    state           bytea,
    state_at_ms     bigint
  );

  CREATE TABLE reports (
    region  text NOT NULL,
    kind    text NOT NULL,
    id      text NOT NULL,
    at_ms   bigint NOT NULL,
    present boolean NOT NULL,
    outcome text NOT NULL,
    version bigint NOT NULL,
    body    bytea NOT NULL,
    PRIMARY KEY (region, kind, id),
    FOREIGN KEY (region, kind, id) REFERENCES objects (region, kind, id) ON DELETE CASCADE
  );

  CREATE TABLE instances (
    region   text NOT NULL,
    kind     text NOT NULL DEFAULT 'deployment',
    id       text NOT NULL,
    k8s_name text NOT NULL,
    position integer NOT NULL,
    address  text NOT NULL,
    body     bytea NOT NULL,
    PRIMARY KEY (region, id, k8s_name),
    FOREIGN KEY (region, kind, id) REFERENCES reports (region, kind, id) ON DELETE CASCADE
  );
  CREATE UNIQUE INDEX instances_address ON instances (region, address) WHERE address <> '';

  CREATE TABLE history (
    entry   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    region  text NOT NULL REFERENCES regions (name),
    at_ms   bigint NOT NULL,
    author  text NOT NULL,
    kind    text NOT NULL,
    id      text NOT NULL,
    version bigint NOT NULL,
    event   text NOT NULL,
    outcome text NOT NULL
  );
  CREATE INDEX history_region ON history (region, entry);
  CREATE INDEX history_object ON history (region, kind, id, entry);
  `,
  `
  LOCK TABLE regions, agents, objects, reports, instances, history IN ACCESS EXCLUSIVE MODE;

  CREATE INDEX objects_page ON objects (region, kind, id COLLATE "C");

  -- Separate from the objects' counter: a change of an environment is not sent to agents.
  ALTER TABLE regions ADD COLUMN environment_counter bigint NOT NULL DEFAULT 0;
  CREATE TABLE environments (
    region       text NOT NULL REFERENCES regions (name),
    id           text NOT NULL,
    workspace_id text NOT NULL,
    project_id   text NOT NULL,
    -- A ctrl.v1.SecretsConfig: readable names, encrypted values.
    secrets      bytea NOT NULL,
    version      bigint NOT NULL,
    PRIMARY KEY (region, id)
  );

  CREATE TABLE releases (
    region     text NOT NULL REFERENCES agents (region),
    controller text NOT NULL,
    key        text NOT NULL,
    at_ms      bigint NOT NULL,
    author     text NOT NULL,
    PRIMARY KEY (region, controller, key)
  );

  -- "entry" is taken when a row is written, and transactions end in any order. "number" is taken
  -- under a lock that lasts until the commit, so that a reader that continues from one misses nothing.
  -- The table assigns it, so that the entries of an older server beside this one are numbered too.
  CREATE TABLE history_heads (
    region text PRIMARY KEY REFERENCES regions (name),
    newest bigint NOT NULL
  );
  -- Existing rows get their "entry" as their number, in the next step.
  ALTER TABLE history ADD COLUMN number bigint;
  INSERT INTO history_heads SELECT r.name, h.entry FROM regions r CROSS JOIN LATERAL (
    SELECT entry FROM history WHERE region = r.name ORDER BY entry DESC LIMIT 1
  ) h;
  CREATE FUNCTION number_history() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO krane.history_heads AS h (region, newest) VALUES (NEW.region, 1)
      ON CONFLICT (region) DO UPDATE SET newest = h.newest + 1
      RETURNING newest INTO NEW.number;
    RETURN NEW;
  END $$;
  CREATE TRIGGER history_number BEFORE INSERT ON history
    FOR EACH ROW EXECUTE FUNCTION number_history();
  -- Partial, so that they are created instantly while no row has a number.
  CREATE UNIQUE INDEX history_number ON history (region, number) WHERE number IS NOT NULL;
  CREATE INDEX history_object_number ON history (region, kind, id, number) WHERE number IS NOT NULL;
  `,
  {
    eachBehind: `
    WITH bit AS (SELECT entry FROM history WHERE entry > $1 ORDER BY entry LIMIT 10000),
    numbered AS (
      UPDATE history h SET number = h.entry FROM bit b WHERE h.entry = b.entry AND h.number IS NULL
    )
    SELECT max(entry) AS last FROM bit`,
  },
  `
  LOCK TABLE agents, objects IN ACCESS EXCLUSIVE MODE;

  -- The merged state after the report of that time. If the time is not that of the last report, an older
  -- server, which does not write this column, stored that report.
  ALTER TABLE agents ADD COLUMN known bytea, ADD COLUMN known_at_ms bigint;

  -- Since when an object has been gone whose deletion was ordered with that version.
  ALTER TABLE objects ADD COLUMN gone_version bigint, ADD COLUMN gone_at_ms bigint;
  -- The policies of a deployment.
  CREATE INDEX objects_owner ON objects (region, deployment_id) WHERE deployment_id IS NOT NULL;
  `,
  `
  CREATE TABLE adoptions (
    region     text NOT NULL REFERENCES agents (region),
    controller text NOT NULL,
    kind       text NOT NULL,
    namespace  text NOT NULL,
    name       text NOT NULL,
    uid        text NOT NULL,
    at_ms      bigint NOT NULL,
    author     text NOT NULL,
    PRIMARY KEY (region, controller, kind, namespace, name, uid)
  );
  `,
  `
  -- The incarnations of this history; see incarnation-table.ts.
  CREATE TABLE incarnations (
    ordinal    bigint PRIMARY KEY,
    id         text NOT NULL UNIQUE,
    parent     text NOT NULL UNIQUE,
    facts      text NOT NULL,
    started_ms bigint NOT NULL,
    reason     text NOT NULL
  );

  -- What a restore, a copy or a promotion changes; null on a replica. The timeline is that of the current WAL file,
  -- because the control file still has the old one right after a promotion. A provider may have taken some of the
  -- functions away; the other facts then have to do.
  CREATE FUNCTION database_facts() RETURNS text LANGUAGE plpgsql AS $$
  DECLARE
    system text := '';
    timeline text := '';
  BEGIN
    IF pg_is_in_recovery() THEN
      RETURN NULL;
    END IF;
    BEGIN
      system := (SELECT system_identifier FROM pg_control_system());
    EXCEPTION WHEN insufficient_privilege OR undefined_function OR feature_not_supported THEN
      NULL;
    END;
    BEGIN
      timeline := left(pg_walfile_name(pg_current_wal_lsn()), 8);
    EXCEPTION WHEN insufficient_privilege OR undefined_function OR feature_not_supported THEN
      NULL;
    END;
    RETURN concat_ws('/', system, timeline,
      (SELECT oid FROM pg_database WHERE datname = current_database()), 'krane.incarnations'::regclass::oid);
  END $$;
  `,
  `
  LOCK TABLE reports IN ACCESS EXCLUSIVE MODE;
  -- The order of the report among others about the object; see report-rank.ts. Null if its agent numbers none.
  ALTER TABLE reports ADD COLUMN rank text;
  `,
  `
  LOCK TABLE objects IN ACCESS EXCLUSIVE MODE;

  -- The digests of what is wanted; see model/digest.ts for what a bucket and its sum are. The database keeps them, so
  -- that the changes of an older server beside this one count too.
  CREATE TABLE digests (
    region text NOT NULL REFERENCES regions (name),
    kind   text NOT NULL,
    bucket smallint NOT NULL,
    sum    numeric NOT NULL,
    PRIMARY KEY (region, kind, bucket)
  );
  -- Part of every content hash, so that nobody who chooses content can foresee a sum.
  CREATE TABLE digest_key (key bytea NOT NULL);
  INSERT INTO digest_key
    VALUES (sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')));

  -- Both are null on existing rows, until the next step.
  ALTER TABLE objects ADD COLUMN bucket smallint, ADD COLUMN content_hash bytea;

  CREATE FUNCTION bucket_of(id text) RETURNS smallint LANGUAGE sql AS $$
    SELECT get_byte(sha256(convert_to(id, 'UTF8')), 0)::smallint
  $$;
  CREATE FUNCTION content_hash_of(desired text, format smallint, spec bytea) RETURNS bytea LANGUAGE sql AS $$
    SELECT sha256(key || sha256(convert_to(desired, 'UTF8') || decode('00', 'hex') || int2send(format) || spec))
    FROM krane.digest_key
  $$;
  CREATE FUNCTION digest_term(id text, version bigint, content_hash bytea) RETURNS numeric LANGUAGE plpgsql AS $$
  DECLARE
    bytes bytea := convert_to(id, 'UTF8');
    hex text := encode(sha256(int4send(octet_length(bytes)) || bytes || int8send(version) || content_hash), 'hex');
    term numeric := 0;
  BEGIN
    FOR part IN 0..7 LOOP
      term := term * 4294967296 + ('x' || substr(hex, part * 8 + 1, 8))::bit(32)::bigint;
    END LOOP;
    RETURN term;
  END $$;
  -- Not negative, for terms above -2^256.
  CREATE FUNCTION digest_sum(term numeric) RETURNS numeric LANGUAGE sql AS $$
    SELECT mod(term + ${digestModulus}, ${digestModulus})
  $$;
  CREATE FUNCTION add_to_digest(of_region text, of_kind text, of_bucket smallint, term numeric) RETURNS void
  LANGUAGE sql AS $$
    INSERT INTO krane.digests AS d (region, kind, bucket, sum)
      VALUES (of_region, of_kind, of_bucket, krane.digest_sum(term))
      ON CONFLICT (region, kind, bucket) DO UPDATE SET sum = krane.digest_sum(d.sum + excluded.sum)
  $$;

  CREATE FUNCTION hash_content() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    NEW.bucket := krane.bucket_of(NEW.id);
    NEW.content_hash := krane.content_hash_of(NEW.desired, NEW.format, NEW.spec);
    RETURN NEW;
  END $$;
  CREATE TRIGGER objects_hash_new BEFORE INSERT ON objects
    FOR EACH ROW EXECUTE FUNCTION hash_content();
  CREATE TRIGGER objects_hash_changed BEFORE UPDATE ON objects
    FOR EACH ROW WHEN (
      NEW.content_hash IS NULL OR
      (OLD.id, OLD.desired, OLD.format, OLD.spec, OLD.bucket, OLD.content_hash)
        IS DISTINCT FROM (NEW.id, NEW.desired, NEW.format, NEW.spec, NEW.bucket, NEW.content_hash)
    ) EXECUTE FUNCTION hash_content();

  -- A row counts if it is wanted, and has a hash. A word in "desired" that this server does not know counts as wanted.
  CREATE FUNCTION keep_digest() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    term numeric := 0;
  BEGIN
    IF TG_OP <> 'INSERT' AND OLD.desired <> 'stopped' AND OLD.content_hash IS NOT NULL THEN
      term := - krane.digest_term(OLD.id, OLD.version, OLD.content_hash);
      IF TG_OP = 'DELETE' OR (OLD.region, OLD.kind, OLD.bucket) <> (NEW.region, NEW.kind, NEW.bucket) THEN
        PERFORM krane.add_to_digest(OLD.region, OLD.kind, OLD.bucket, term);
        term := 0;
      END IF;
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.desired <> 'stopped' AND NEW.content_hash IS NOT NULL THEN
      term := term + krane.digest_term(NEW.id, NEW.version, NEW.content_hash);
    END IF;
    IF term <> 0 THEN
      PERFORM krane.add_to_digest(NEW.region, NEW.kind, NEW.bucket, term);
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER objects_digest AFTER INSERT OR DELETE ON objects
    FOR EACH ROW EXECUTE FUNCTION keep_digest();
  CREATE TRIGGER objects_digest_changed AFTER UPDATE ON objects
    FOR EACH ROW WHEN (
      (OLD.region, OLD.kind, OLD.id, OLD.desired, OLD.version, OLD.content_hash)
        IS DISTINCT FROM (NEW.region, NEW.kind, NEW.id, NEW.desired, NEW.version, NEW.content_hash)
    ) EXECUTE FUNCTION keep_digest();
  CREATE FUNCTION clear_digests() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    DELETE FROM krane.digests;
    RETURN NULL;
  END $$;
  CREATE TRIGGER objects_cleared AFTER TRUNCATE ON objects
    FOR EACH STATEMENT EXECUTE FUNCTION clear_digests();
  `,
  {
    // One region at a time, locked first as by every change. The triggers compute the hashes.
    eachBehind: `
    WITH locked AS (
      SELECT name FROM regions r
      WHERE $1::text IS NOT NULL
        AND EXISTS (SELECT 1 FROM objects o WHERE o.region = r.name AND o.content_hash IS NULL)
      LIMIT 1 FOR NO KEY UPDATE
    ), bit AS (
      SELECT o.region, o.kind, o.id FROM objects o JOIN locked l ON o.region = l.name
      WHERE o.content_hash IS NULL LIMIT 500
    ), hashed AS (
      UPDATE objects o SET content_hash = NULL FROM bit b
      WHERE o.region = b.region AND o.kind = b.kind AND o.id = b.id AND o.content_hash IS NULL
    )
    SELECT name AS last FROM locked`,
  },
  `
  LOCK TABLE objects IN ACCESS EXCLUSIVE MODE;
  DROP INDEX IF EXISTS objects_unhashed;
  `,
  `
  LOCK TABLE objects IN ACCESS EXCLUSIVE MODE;
  -- The app that a deployment is a release of.
  ALTER TABLE objects ADD COLUMN app_id text;

  -- "body" is a krane.admin.v1.App with the encrypted secrets of its releases.
  CREATE TABLE apps (
    region         text NOT NULL REFERENCES regions (name),
    id             text NOT NULL,
    name           text NOT NULL,
    environment_id text NOT NULL,
    -- Whether time alone may change it.
    active         boolean NOT NULL,
    body           bytea NOT NULL,
    version        bigint NOT NULL,
    PRIMARY KEY (region, id),
    CONSTRAINT apps_name UNIQUE (region, name)
  );
  CREATE INDEX apps_page ON apps (region, id COLLATE "C");
  CREATE INDEX apps_active ON apps (region, id) WHERE active;
  CREATE INDEX apps_environment ON apps (region, environment_id);
  `,
  `
  -- Of browsers. The id is a digest: what is stored here signs nobody in.
  CREATE TABLE sessions (
    id            text PRIMARY KEY,
    ordinal       bigint GENERATED ALWAYS AS IDENTITY,
    name          text NOT NULL,
    binding       text NOT NULL,
    created_at_ms bigint NOT NULL,
    expires_at_ms bigint NOT NULL
  );
  CREATE INDEX sessions_name ON sessions (name);
  CREATE INDEX sessions_expiry ON sessions (expires_at_ms);
  `,
  `
  -- Those that a provider named when somebody signed in there.
  ALTER TABLE sessions ADD COLUMN groups text[];

  -- Of browsers that are at a provider to sign in.
  CREATE TABLE sign_ins (
    id            text PRIMARY KEY,
    ordinal       bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    return_to     text NOT NULL,
    expires_at_ms bigint NOT NULL
  );
  CREATE INDEX sign_ins_expiry ON sign_ins (expires_at_ms);
  `,
  `
  LOCK TABLE agents IN ACCESS EXCLUSIVE MODE;
  ALTER TABLE agents ADD COLUMN heard_since_ms bigint;
  `,
  `
  -- What was applied together under one name. A deletion removes the member, in the same transaction.
  CREATE TABLE set_members (
    region text NOT NULL REFERENCES regions (name),
    kind   text NOT NULL,
    id     text NOT NULL,
    name   text NOT NULL,
    PRIMARY KEY (region, kind, id)
  );
  CREATE INDEX set_members_name ON set_members (region, name);
  `,
  `
  CREATE TABLE standbys (
    region      text NOT NULL REFERENCES regions (name),
    instance_id text NOT NULL,
    version     text NOT NULL,
    at_ms       bigint NOT NULL,
    PRIMARY KEY (region, instance_id)
  );
  `,
  `
  LOCK TABLE objects IN ACCESS EXCLUSIVE MODE;
  ALTER TABLE objects ADD COLUMN created_at_ms bigint;

  -- By the database, so that it is right for rows that servers of the previous version write meanwhile, too.
  CREATE FUNCTION note_creation() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    NEW.created_at_ms := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    RETURN NEW;
  END $$;
  CREATE TRIGGER objects_created BEFORE INSERT ON objects
    FOR EACH ROW EXECUTE FUNCTION note_creation();
  CREATE TRIGGER objects_created_again BEFORE UPDATE OF desired ON objects
    FOR EACH ROW WHEN (OLD.desired = 'stopped' AND NEW.desired = 'running') EXECUTE FUNCTION note_creation();
  `,
  `
  LOCK TABLE objects IN SHARE ROW EXCLUSIVE MODE;
  -- Which workspace may use a hostname, in all regions.
  CREATE TABLE hostname_grants (
    name         text PRIMARY KEY,
    workspace_id text NOT NULL,
    author       text NOT NULL,
    at_ms        bigint NOT NULL
  );
  CREATE INDEX hostname_grants_page ON hostname_grants (name COLLATE "C");

  -- Those of each route. A server of the previous version does not write them.
  CREATE TABLE hostnames (
    region       text NOT NULL,
    kind         text NOT NULL DEFAULT 'route',
    route_id     text NOT NULL,
    workspace_id text NOT NULL,
    hostname     text NOT NULL,
    PRIMARY KEY (region, hostname),
    FOREIGN KEY (region, kind, route_id) REFERENCES objects (region, kind, id) ON DELETE CASCADE
  );
  CREATE INDEX hostnames_route ON hostnames (region, route_id);
  `,
];
