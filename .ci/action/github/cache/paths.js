const core = require('@actions/core')
const { rmSync, symlinkSync } = require('node:fs')

// A cache is found by its paths, too. GitHub's runners have one directory for temporary files, act makes one for each job.
module.exports = () => {
  const { HOME, GITHUB_JOB, RUNNER_TEMP } = process.env
  const temp = `${HOME}/temp-${GITHUB_JOB}`
  rmSync(temp, { force: true })
  symlinkSync(RUNNER_TEMP, temp)
  return core.getMultilineInput('path').map(path => path.replace(RUNNER_TEMP, temp))
}
