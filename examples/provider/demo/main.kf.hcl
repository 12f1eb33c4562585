provider "textstore" {
  url   = "http://127.0.0.1:8765"
  token = secret_env("TEXTSTORE_TOKEN")
}

resource "textstore_file" "notice" {
  name    = "notices/today"
  content = "The store is open.\n"
  headers = {
    "Cache-Control" = "max-age=60"
  }
}

resource "textstore_link" "latest" {
  name   = "latest"
  target = textstore_file.notice.name
}
