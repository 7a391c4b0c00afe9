const cache = require('@actions/cache')
const core = require('@actions/core')
const paths = require('./paths')

async function save() {
  await cache.saveCache(paths(), core.getInput('key'))
  core.info(`saved: ${core.getInput('key')}`)
}

save().catch(err => core.setFailed(err))
