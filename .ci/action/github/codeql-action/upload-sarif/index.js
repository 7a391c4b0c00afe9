const core = require('@actions/core')
const { readFileSync } = require('node:fs')
const { gzipSync } = require('node:zlib')

async function upload() {
  const { GITHUB_API_URL: api, GITHUB_REPOSITORY: repository, GITHUB_SHA: sha, GITHUB_REF: ref } = process.env
  const sarif = gzipSync(readFileSync(core.getInput('sarif_file'))).toString('base64')
  const answer = await fetch(`${api}/repos/${repository}/code-scanning/sarifs`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${core.getInput('token')}` },
    body: JSON.stringify({ commit_sha: sha, ref, sarif, category: core.getInput('category') })
  })
  if (!answer.ok) throw new Error(`code scanning answers ${answer.status}`)
}

upload().catch(err => core.setFailed(err))
