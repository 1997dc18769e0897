PRAGMA application_id = 1818583396;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE keys (
    hash BLOB NOT NULL, kind TEXT NOT NULL, lead INTEGER NOT NULL, PRIMARY KEY (hash, kind, lead)
) WITHOUT ROWID;
INSERT INTO "keys" VALUES(X'0F2E0400290FA67C0E49258993A4A0F8','url',2);
INSERT INTO "keys" VALUES(X'75C1E810F33B0A54C81D067346688452','email',3);
INSERT INTO "keys" VALUES(X'9639157C1F52D081E1EC5DA82E2485C0','email',1);
INSERT INTO "keys" VALUES(X'BD5EC6BB5C1125A0BD29E3788EDEA6CF','email',4);
CREATE TABLE leads (
    lead INTEGER PRIMARY KEY, status TEXT, detail TEXT, error_code TEXT,
    chunk INTEGER NOT NULL, attempts INTEGER NOT NULL
);
INSERT INTO "leads" VALUES(1,'added','',NULL,1,1);
INSERT INTO "leads" VALUES(2,'added','',NULL,2,1);
INSERT INTO "leads" VALUES(3,'rejected','POST /sequences/s1/leads: status 400, ''odd''. The service cannot make sense of the request: check the arguments.',NULL,3,1);
INSERT INTO "leads" VALUES(4,'unknown','POST /sequences/s1/leads: no response from {service}: [Errno 104] Connection reset by peer. Check base_url and the network, or try again later.',NULL,4,1);
CREATE TABLE notes (note INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE runs (run INTEGER PRIMARY KEY, began_at TEXT NOT NULL);
INSERT INTO "runs" VALUES(1,'2026-11-22T05:54:16+00:00');
CREATE TABLE salt (salt BLOB NOT NULL);
INSERT INTO "salt" VALUES(X'EA2A6856780E88E7B1011C633B51C190');
CREATE TABLE submission (part TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "submission" VALUES('service','{service}');
INSERT INTO "submission" VALUES('sequence','bc9d4ec4625040a0e64733f549deb55035782db2fb97a10ff2179d0277951773');
INSERT INTO "submission" VALUES('settings','50690c8335f80a1d1c12cd33e133ffd4259dd5c6a7a7afa6ae91c32acd9645c8');
COMMIT;
