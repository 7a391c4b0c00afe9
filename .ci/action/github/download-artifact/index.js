const { DefaultArtifactClient } = require('@actions/artifact')
const core = require('@actions/core')
const { join, matchesGlob } = require('node:path')

async function download() {
  const client = new DefaultArtifactClient()
  const { artifacts } = await client.listArtifacts()
  for (const { id, name } of artifacts.filter(a => matchesGlob(a.name, core.getInput('pattern')))) {
    await client.downloadArtifact(id, { path: join(core.getInput('path'), name) })
  }
}

download().catch(err => core.setFailed(err))
