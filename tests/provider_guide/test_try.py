from tests.provider_guide.conftest import *
def test_x(folder):
    folder.write(folder.connect())
    for i in range(25):
        folder.put("create","file",f"f/{i:02}", content="hello\nworld" if i%2 else "x", headers={"etag": "1"} if i % 3 else {})
    folder.put("put","link","b", target="f/03")
    folder.put("put","link","c", target="f/04")
    for words in (["import","--all","--out","gen.kf.hcl"],["plan"],["import", "--all"],["audit","verify"],["destroy","--auto-approve"]):
        code = run(words)
        r = folder.capsys.readouterr()
        with folder.capsys.disabled():
            print("$", words, code); print(r.out[:6000]); print(r.err[:3000])
            if words[0]=="import": print((folder.path/"gen.kf.hcl").exists() and (folder.path/"gen.kf.hcl").read_text()[:3000])
