const { DefaultArtifactClient } = require('@actions/artifact')
const core = require('@actions/core')
const { readdirSync } = require('node:fs')
const { join, sep } = require('node:path')

async function upload() {
  const root = core.getInput('path')
  const hidden = core.getBooleanInput('include-hidden-files')
  const files = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .filter(file => hidden || !file.split(sep).some(part => part.startsWith('.')))
  await new DefaultArtifactClient().uploadArtifact(core.getInput('name'), files, root)
}

upload().catch(err => core.setFailed(err))
