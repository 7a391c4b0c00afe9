const cache = require('@actions/cache')
const core = require('@actions/core')
const paths = require('./paths')

async function restore() {
  const keys = [core.getInput('key'), ...core.getMultilineInput('restore-keys')]
  let found = (await cache.restoreCache(paths(), keys[0], keys.slice(1))) || ''
  // The server of act keeps keys in small letters.
  const asked = keys.find(key => found.startsWith(key.toLowerCase())) || ''
  found = asked + found.slice(asked.length)
  core.info(`restored: ${found}`)
  core.setOutput('cache-matched-key', found)
}

restore().catch(err => core.setFailed(err))
