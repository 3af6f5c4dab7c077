# The verification worker for workerd, with the date and flags of edge/verification/wrangler.jsonc (a test compares
# them).
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "verification", worker = .verification),
    (name = "internet", network = (allow = ["public"], tlsOptions = (trustBrowserCas = true))),
  ],
  sockets = [(name = "http", address = "*:8080", http = (), service = "verification")],
);

const verification :Workerd.Worker = (
  modules = [(name = "verification.js", esModule = embed "verification.js")],
  compatibilityDate = "2026-07-01",
  compatibilityFlags = ["global_fetch_strictly_public"],
  bindings = [(name = "VERIFICATION_SECRET", fromEnvironment = "VERIFICATION_SECRET")],
);
