// Starts `kafkaform lsp` and connects the editor to it. Everything else is in the server.
"use strict";

const { commands, window, workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

const JSON_FILES = ["**/*.kf.json", "**/*.kfvars.json"];
const WATCHED = "**/{*.hcl,*.kf.json,*.kfvars.json,*.tf,*.tofu,*.tfvars}";

let client;

function makeClient() {
  const settings = workspace.getConfiguration("kafkaform");
  const [command, ...words] = settings.get("command");
  const flags = settings.get("live") ? ["--live"] : [];
  return new LanguageClient(
    "kafkaform",
    "kafkaform",
    { command, args: [...words, "lsp", ...flags] },
    {
      documentSelector: [
        { scheme: "file", language: "kafkaform" },
        ...JSON_FILES.map((pattern) => ({ scheme: "file", pattern })),
      ],
      synchronize: { fileEvents: workspace.createFileSystemWatcher(WATCHED) },
    },
  );
}

async function start() {
  client = makeClient();
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    window.showErrorMessage(
      `kafkaform lsp did not start: ${error.message}. ` +
        "Run it in a terminal, which says what to install, or set kafkaform.command.",
    );
  }
}

async function stop() {
  const stopped = client;
  client = undefined;
  await stopped?.stop();
}

async function activate(context) {
  context.subscriptions.push(
    commands.registerCommand("kafkaform.restart", async () => {
      await stop();
      await start();
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
