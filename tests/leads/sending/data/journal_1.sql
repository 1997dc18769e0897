PRAGMA application_id = 1818583396;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE entries (
    position INTEGER PRIMARY KEY, status TEXT, detail TEXT, error_code TEXT,
    chunk INTEGER NOT NULL, attempts INTEGER NOT NULL
);
INSERT INTO "entries" VALUES(0,'added','',NULL,1,1);
INSERT INTO "entries" VALUES(1,'added','',NULL,1,1);
INSERT INTO "entries" VALUES(2,'rejected','POST /sequences/s1/leads: status 400, ''odd''. The service cannot make sense of the request: check the arguments.',NULL,2,1);
INSERT INTO "entries" VALUES(5,'rejected','POST /sequences/s1/leads: status 400, ''odd''. The service cannot make sense of the request: check the arguments.',NULL,2,1);
INSERT INTO "entries" VALUES(6,'unknown','POST /sequences/s1/leads: no answer from {service}: [Errno 104] Connection reset by peer. Check base_url and the network, or try again later.',NULL,3,1);
INSERT INTO "entries" VALUES(7,'unknown','POST /sequences/s1/leads: no answer from {service}: [Errno 104] Connection reset by peer. Check base_url and the network, or try again later.',NULL,3,1);
INSERT INTO "entries" VALUES(8,'not_sent','POST /sequences/s1/leads: status 401, ''who are you?''. The token is not accepted here: check api_key or OUTREACH_API_KEY.',NULL,4,1);
INSERT INTO "entries" VALUES(9,'not_sent','POST /sequences/s1/leads: status 401, ''who are you?''. The token is not accepted here: check api_key or OUTREACH_API_KEY.',NULL,4,1);
CREATE TABLE notes (note INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE runs (run INTEGER PRIMARY KEY, began_at TEXT NOT NULL);
INSERT INTO "runs" VALUES(1,'2026-11-22T01:42:47+00:00');
CREATE TABLE submission (part TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "submission" VALUES('service','{service}');
INSERT INTO "submission" VALUES('sequence','bc9d4ec4625040a0e64733f549deb55035782db2fb97a10ff2179d0277951773');
INSERT INTO "submission" VALUES('settings','50690c8335f80a1d1c12cd33e133ffd4259dd5c6a7a7afa6ae91c32acd9645c8');
INSERT INTO "submission" VALUES('rows','dfbfdb400962bcdae6405a3bf2fb9b5bf22ac6cec8ee69a8c0e47cffa97b5f5d');
COMMIT;
