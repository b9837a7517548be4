<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>ChatListModel</name>
    <message>
        <source>Today</source>
        <translation>今天</translation>
    </message>
    <message>
        <source>Yesterday</source>
        <translation>昨天</translation>
    </message>
    <message>
        <source>Last 7 days</source>
        <translation>最近 7 天</translation>
    </message>
    <message>
        <source>{month} {year}</source>
        <translation>{year} 年 {month}</translation>
    </message>
</context>
<context>
    <name>ChatListPanel</name>
    <message>
        <source>New chat</source>
        <translation>新对话</translation>
    </message>
    <message>
        <source>Your chats will be listed here.</source>
        <translation>你的对话会列在这里。</translation>
    </message>
    <message>
        <source>Chats</source>
        <translation>对话</translation>
    </message>
</context>
<context>
    <name>ChatListView</name>
    <message>
        <source>Rename</source>
        <translation>重命名</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>删除</translation>
    </message>
</context>
<context>
    <name>ChatPage</name>
    <message>
        <source>Show or hide the chats</source>
        <translation>显示或隐藏对话列表</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>对话内容</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>新对话</translation>
    </message>
    <message numerus="yes">
        <source>%n turn(s)</source>
        <translation>
            <numerusform>%n 轮</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Composer</name>
    <message>
        <source>context {0} / {1}</source>
        <translation>上下文 {0} / {1}</translation>
    </message>
    <message>
        <source>Ask anything</source>
        <translation>想问什么都可以</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>消息</translation>
    </message>
</context>
<context>
    <name>ErrorPanel</name>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Copy the error</source>
        <translation>复制错误信息</translation>
    </message>
    <message>
        <source>Retry</source>
        <translation>重试</translation>
    </message>
</context>
<context>
    <name>LinkPopover</name>
    <message>
        <source>Link</source>
        <translation>链接</translation>
    </message>
    <message>
        <source>Open in the browser</source>
        <translation>在浏览器中打开</translation>
    </message>
    <message>
        <source>Copy address</source>
        <translation>复制地址</translation>
    </message>
</context>
<context>
    <name>MainWindow</name>
    <message>
        <source>config.yaml has a problem; the last good settings stay in effect.</source>
        <translation>config.yaml 有问题，仍在使用上一份正确的设置。</translation>
    </message>
    <message>
        <source>The server is off; chats in this window work.</source>
        <translation>服务未启动，本窗口中的对话不受影响。</translation>
    </message>
    <message>
        <source>Use port {0}</source>
        <translation>改用端口 {0}</translation>
    </message>
    <message>
        <source>The engine stopped.</source>
        <translation>引擎已停止。</translation>
    </message>
</context>
<context>
    <name>MessageView</name>
    <message>
        <source>↳ {0}</source>
        <translation>↳ {0}</translation>
    </message>
    <message>
        <source>You</source>
        <translation>你</translation>
    </message>
    <message>
        <source>Assistant</source>
        <translation>助手</translation>
    </message>
    <message>
        <source>Message from {0}</source>
        <translation>{0} 的消息</translation>
    </message>
    <message>
        <source>Text from {0}</source>
        <translation>{0} 的文字</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>已复制</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Copy the message</source>
        <translation>复制这条消息</translation>
    </message>
    <message>
        <source>Retry</source>
        <translation>重试</translation>
    </message>
</context>
<context>
    <name>ModelGuide</name>
    <message>
        <source>Laya needs a model</source>
        <translation>Laya 需要一个模型</translation>
    </message>
    <message>
        <source>The quickest start is the starter model SmolLM2 135M (98 MB): put the file SmolLM2-135M-Instruct.Q4_1.gguf into the models folder and open Laya again. In a checkout, “python3 packaging/dev.py run” fetches it for you.</source>
        <translation>最快的办法是用入门模型 SmolLM2 135M（98 MB）：把文件 SmolLM2-135M-Instruct.Q4_1.gguf 放进模型文件夹，再重新打开 Laya。如果是源码目录，运行“python3 packaging/dev.py run”会自动下载它。</translation>
    </message>
    <message>
        <source>Or choose a GGUF file that you have. It stays where it is; Laya adds it to “models:” in config.yaml.</source>
        <translation>也可以选择你已有的 GGUF 文件。文件留在原处，Laya 只把它写进 config.yaml 的“models:”。</translation>
    </message>
    <message>
        <source>Choose a GGUF file…</source>
        <translation>选择 GGUF 文件…</translation>
    </message>
    <message>
        <source>Open models folder</source>
        <translation>打开模型文件夹</translation>
    </message>
    <message>
        <source>Copy the lines for config.yaml</source>
        <translation>复制要写进 config.yaml 的内容</translation>
    </message>
    <message>
        <source>Choose a GGUF file</source>
        <translation>选择 GGUF 文件</translation>
    </message>
    <message>
        <source>GGUF models (*.gguf)</source>
        <translation>GGUF 模型 (*.gguf)</translation>
    </message>
    <message>
        <source>All files (*)</source>
        <translation>所有文件 (*)</translation>
    </message>
</context>
<context>
    <name>ModelPicker</name>
    <message>
        <source>Auto (router)</source>
        <translation>自动（路由）</translation>
    </message>
    <message>
        <source>Model: {0}</source>
        <translation>模型：{0}</translation>
    </message>
    <message>
        <source>Choose who answers</source>
        <translation>选择由谁回答</translation>
    </message>
</context>
<context>
    <name>ModelsPage</name>
    <message>
        <source>Models</source>
        <translation>模型</translation>
    </message>
</context>
<context>
    <name>ModelsView</name>
    <message>
        <source>Retry</source>
        <translation>重试</translation>
    </message>
    <message>
        <source>Warm</source>
        <translation>加载</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Unload</source>
        <translation>卸载</translation>
    </message>
</context>
<context>
    <name>MonitorPage</name>
    <message>
        <source>Monitor</source>
        <translation>监控</translation>
    </message>
    <message>
        <source>In use of {0}</source>
        <translation>已用（共 {0}）</translation>
    </message>
    <message>
        <source>Free</source>
        <translation>可用</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Kept for the system</source>
        <translation>为系统保留</translation>
    </message>
    <message>
        <source>Requests</source>
        <translation>请求</translation>
    </message>
    <message>
        <source>Memory, last 2 minutes</source>
        <translation>最近 2 分钟的内存</translation>
    </message>
    <message>
        <source>The line is all memory in use, the bands are models; what is above the dashed line is kept for the system.</source>
        <translation>实线是全部已用内存，色块是各个模型；虚线以上为系统保留。</translation>
    </message>
    <message>
        <source>Memory by model</source>
        <translation>各模型占用内存</translation>
    </message>
    <message>
        <source>Events</source>
        <translation>事件</translation>
    </message>
    <message>
        <source>Waiting for the first sample…</source>
        <translation>正在等待第一次采样…</translation>
    </message>
    <message>
        <source>No model is loaded.</source>
        <translation>没有已加载的模型。</translation>
    </message>
    <message>
        <source>Nothing happened yet. Loads, unloads and crashes appear here.</source>
        <translation>还没有事件。模型的加载、卸载和崩溃会显示在这里。</translation>
    </message>
    <message>
        <source>2 min ago</source>
        <translation>2 分钟前</translation>
    </message>
    <message>
        <source>1 min ago</source>
        <translation>1 分钟前</translation>
    </message>
    <message>
        <source>now</source>
        <translation>现在</translation>
    </message>
    <message>
        <source>{0} + {1} waiting</source>
        <translation>{0} + {1} 等待</translation>
    </message>
    <message>
        <source>loaded</source>
        <translation>已加载</translation>
    </message>
    <message>
        <source>unloading</source>
        <translation>卸载中</translation>
    </message>
    <message>
        <source>fallback</source>
        <translation>后备</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>失败</translation>
    </message>
    <message>
        <source>settings</source>
        <translation>设置</translation>
    </message>
</context>
<context>
    <name>OverflowBar</name>
    <message>
        <source>This chat is longer than the model&apos;s context. Start a new chat, or leave the oldest turns out of what the model sees. Nothing is deleted.</source>
        <translation>这个对话已超出模型的上下文长度。可以新建对话，也可以不再把最早的几轮发给模型。不会删除任何内容。</translation>
    </message>
    <message numerus="yes">
        <source>%n older turn(s) are no longer sent to the model: {0}</source>
        <translation>
            <numerusform>较早的 %n 条消息不再发给模型：{0}</numerusform>
        </translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>新对话</translation>
    </message>
    <message>
        <source>Drop oldest turns and retry</source>
        <translation>略去最早的几轮并重试</translation>
    </message>
</context>
<context>
    <name>Rail</name>
    <message>
        <source>Chat</source>
        <translation>对话</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>Routing</source>
        <translation>路由</translation>
    </message>
    <message>
        <source>Monitor</source>
        <translation>监控</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
</context>
<context>
    <name>RoutingPage</name>
    <message>
        <source>Routing</source>
        <translation>路由</translation>
    </message>
    <message>
        <source>Rules</source>
        <translation>规则</translation>
    </message>
    <message>
        <source>Recent decisions</source>
        <translation>最近的决定</translation>
    </message>
    <message>
        <source>Ask something with “Auto (router)”: each decision appears here.</source>
        <translation>用“自动（路由）”提问，每次决定都会显示在这里。</translation>
    </message>
    <message>
        <source>fallback: {0}</source>
        <translation>后备：{0}</translation>
    </message>
    <message>
        <source>Rules are looked at from top to bottom; the first that matches decides.</source>
        <translation>规则从上到下依次检查，第一条符合的起作用。</translation>
    </message>
    <message>
        <source>For now they are written in config.yaml; editing them here comes in a later version.</source>
        <translation>目前规则写在 config.yaml 中，以后的版本可以在这里编辑。</translation>
    </message>
    <message>
        <source>Everything else</source>
        <translation>其余情况</translation>
    </message>
    <message>
        <source>no rule matched: any model that fits, by {0}</source>
        <translation>没有规则符合时：在合适的模型中按{0}选择</translation>
    </message>
    <message>
        <source>by {0}</source>
        <translation>按{0}</translation>
    </message>
    <message>
        <source>on</source>
        <translation>启用</translation>
    </message>
    <message>
        <source>off</source>
        <translation>停用</translation>
    </message>
</context>
<context>
    <name>SendButton</name>
    <message>
        <source>Stop</source>
        <translation>停止</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>发送</translation>
    </message>
</context>
<context>
    <name>SettingsPage</name>
    <message>
        <source>Settings</source>
        <translation>设置</translation>
    </message>
</context>
<context>
    <name>TextBody</name>
    <message>
        <source>code</source>
        <translation>代码</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>已复制</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>复制</translation>
    </message>
    <message>
        <source>Copy code</source>
        <translation>复制代码</translation>
    </message>
</context>
<context>
    <name>Transcript</name>
    <message>
        <source>Conversation</source>
        <translation>对话内容</translation>
    </message>
    <message>
        <source>↓ Latest</source>
        <translation>↓ 最新</translation>
    </message>
    <message>
        <source>Jump to the latest message</source>
        <translation>跳到最新消息</translation>
    </message>
</context>
<context>
    <name>UndoBar</name>
    <message>
        <source>Chat deleted</source>
        <translation>对话已删除</translation>
    </message>
    <message>
        <source>Chats deleted: {}</source>
        <translation>已删除 {} 个对话</translation>
    </message>
    <message>
        <source>Undo</source>
        <translation>撤销</translation>
    </message>
</context>
<context>
    <name>Welcome</name>
    <message>
        <source>What can I do for you?</source>
        <translation>有什么可以帮你？</translation>
    </message>
    <message>
        <source>Everything runs on this computer. The smallest model that can answer well is chosen.</source>
        <translation>一切都在这台电脑上运行。Laya 会选用能答好的最小模型。</translation>
    </message>
    <message>
        <source>Where is the Eiffel Tower?</source>
        <translation>埃菲尔铁塔在哪里？</translation>
    </message>
    <message>
        <source>Write a Python function that reverses a string.</source>
        <translation>写一个反转字符串的 Python 函数。</translation>
    </message>
    <message>
        <source>Explain in three sentences why the sky is blue.</source>
        <translation>用三句话解释天空为什么是蓝色的。</translation>
    </message>
    <message>
        <source>Give me five ideas for a rainy weekend.</source>
        <translation>给我五个雨天周末的主意。</translation>
    </message>
</context>
<context>
    <name>_Banner</name>
    <message>
        <source>Copy message</source>
        <translation>复制消息</translation>
    </message>
    <message>
        <source>Dismiss</source>
        <translation>关闭</translation>
    </message>
</context>
<context>
    <name>_CardDelegate</name>
    <message>
        <source>reading weights…</source>
        <translation>正在读取权重…</translation>
    </message>
    <message>
        <source>{0} now</source>
        <translation>当前 {0}</translation>
    </message>
</context>
<context>
    <name>_FilesCard</name>
    <message>
        <source>Config file</source>
        <translation>配置文件</translation>
    </message>
    <message>
        <source>Chats and models</source>
        <translation>对话与模型</translation>
    </message>
    <message>
        <source>Logs</source>
        <translation>日志</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>打开</translation>
    </message>
    <message>
        <source>Open: {0}</source>
        <translation>打开：{0}</translation>
    </message>
</context>
<context>
    <name>_Foot</name>
    <message>
        <source>Starting</source>
        <translation>启动中</translation>
    </message>
    <message>
        <source>The engine is starting.</source>
        <translation>引擎正在启动。</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>The engine stopped.</source>
        <translation>引擎已停止。</translation>
    </message>
    <message>
        <source>Busy</source>
        <translation>忙碌</translation>
    </message>
    <message numerus="yes">
        <source>%n answer(s) are being written.</source>
        <translation>
            <numerusform>正在写 %n 个回答。</numerusform>
        </translation>
    </message>
    <message>
        <source>Loading</source>
        <translation>加载中</translation>
    </message>
    <message>
        <source>A model is being loaded.</source>
        <translation>正在加载模型。</translation>
    </message>
    <message>
        <source>Ready</source>
        <translation>就绪</translation>
    </message>
    <message>
        <source>The engine is ready.</source>
        <translation>引擎已就绪。</translation>
    </message>
    <message>
        <source>Memory: {used} of {limit} in use, {models} by models, {reserved} kept for the system.</source>
        <translation>内存：共 {limit}，已用 {used}，其中模型占 {models}，为系统保留 {reserved}。</translation>
    </message>
</context>
<context>
    <name>_GeneralCard</name>
    <message>
        <source>Same as the system</source>
        <translation>跟随系统</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>浅色</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>深色</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>语言</translation>
    </message>
    <message>
        <source>Changes at once.</source>
        <translation>立即生效。</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>主题</translation>
    </message>
    <message>
        <source>Light, dark, or whatever the system shows.</source>
        <translation>浅色、深色，或与系统一致。</translation>
    </message>
</context>
<context>
    <name>_ServerCard</name>
    <message>
        <source>Server</source>
        <translation>服务</translation>
    </message>
    <message>
        <source>Copy address</source>
        <translation>复制地址</translation>
    </message>
    <message>
        <source>Copy curl command</source>
        <translation>复制 curl 命令</translation>
    </message>
    <message>
        <source>Programs that speak the OpenAI API can use Laya at this address.</source>
        <translation>支持 OpenAI API 的程序可以通过这个地址使用 Laya。</translation>
    </message>
    <message>
        <source>The server is off.</source>
        <translation>服务未启动。</translation>
    </message>
</context>
<context>
    <name>_Words</name>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%n 个词元</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>busy · %n stream(s)</source>
        <translation>
            <numerusform>忙碌 · %n 个回答</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n answer(s)</source>
        <translation>
            <numerusform>%n 个回答</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>chat</name>
    <message>
        <source>Choosing a model…</source>
        <translation>正在选择模型…</translation>
    </message>
    <message>
        <source>In the queue, place {0}</source>
        <translation>排队中，第 {0} 位</translation>
    </message>
    <message>
        <source>Loading {model}… {percent}</source>
        <translation>正在加载 {model}… {percent}</translation>
    </message>
    <message>
        <source>Reading the prompt… {0}</source>
        <translation>正在读取提示词… {0}</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>why: {0}</source>
        <translation>原因：{0}</translation>
    </message>
    <message>
        <source>{model}: not eligible, {reason}</source>
        <translation>{model}：不可用，{reason}</translation>
    </message>
    <message>
        <source>{0}: chosen</source>
        <translation>{0}：选中</translation>
    </message>
    <message>
        <source>{0}: could answer too</source>
        <translation>{0}：也可以回答</translation>
    </message>
    <message>
        <source>decided in {0}</source>
        <translation>决定用时 {0}</translation>
    </message>
    <message>
        <source>stopped</source>
        <translation>已停止</translation>
    </message>
    <message>
        <source>{0} to first token</source>
        <translation>首个词元 {0}</translation>
    </message>
    <message>
        <source>{0} tokens/s</source>
        <translation>{0} 词元/秒</translation>
    </message>
    <message>
        <source>context {0} / {1}</source>
        <translation>上下文 {0} / {1}</translation>
    </message>
    <message>
        <source>no longer sent</source>
        <translation>不再发送</translation>
    </message>
    <message>
        <source>failed: {0}</source>
        <translation>失败：{0}</translation>
    </message>
</context>
<context>
    <name>engine</name>
    <message>
        <source>There is no such model.</source>
        <translation>没有这个模型。</translation>
    </message>
    <message>
        <source>The model&apos;s file is missing.</source>
        <translation>找不到模型文件。</translation>
    </message>
    <message>
        <source>The model cannot be loaded.</source>
        <translation>无法加载模型。</translation>
    </message>
    <message>
        <source>What runs this kind of model is not installed.</source>
        <translation>未安装运行此类模型的组件。</translation>
    </message>
    <message>
        <source>The model&apos;s chat template does not work.</source>
        <translation>模型的对话模板无法使用。</translation>
    </message>
    <message>
        <source>The chat is too long for this model.</source>
        <translation>对话太长，超出了该模型的上下文。</translation>
    </message>
    <message>
        <source>Too many requests are waiting.</source>
        <translation>等待中的请求太多。</translation>
    </message>
    <message>
        <source>The request waited too long.</source>
        <translation>请求等待超时。</translation>
    </message>
    <message>
        <source>There is not enough memory.</source>
        <translation>内存不足。</translation>
    </message>
    <message>
        <source>The model&apos;s process crashed.</source>
        <translation>模型进程崩溃了。</translation>
    </message>
    <message>
        <source>The model was unloaded.</source>
        <translation>模型已被卸载。</translation>
    </message>
    <message>
        <source>The engine is not running.</source>
        <translation>引擎没有运行。</translation>
    </message>
    <message>
        <source>A light prompt goes to the smallest model.</source>
        <translation>简单的提问交给最小的模型。</translation>
    </message>
    <message>
        <source>Code goes to the smallest code model, else to the largest.</source>
        <translation>代码交给最小的代码模型，没有则交给最大的模型。</translation>
    </message>
    <message>
        <source>A demanding prompt goes to the largest model.</source>
        <translation>复杂的提问交给最大的模型。</translation>
    </message>
    <message>
        <source>chosen by you</source>
        <translation>由你选择</translation>
    </message>
    <message>
        <source>fallback</source>
        <translation>后备</translation>
    </message>
    <message>
        <source>The request names this model.</source>
        <translation>请求指定了这个模型。</translation>
    </message>
    <message>
        <source>This model took over. {0}</source>
        <translation>由此模型接替。{0}</translation>
    </message>
    <message>
        <source>{model} took over. {reason}</source>
        <translation>由 {model} 接替。{reason}</translation>
    </message>
    <message>
        <source>Rule “{0}” matches.</source>
        <translation>符合规则“{0}”。</translation>
    </message>
    <message>
        <source>{0} is warm.</source>
        <translation>{0} 已加载，随时可用。</translation>
    </message>
    <message>
        <source>{0} is being unloaded.</source>
        <translation>正在卸载 {0}。</translation>
    </message>
</context>
<context>
    <name>format</name>
    <message>
        <source>{0} s</source>
        <translation>{0} 秒</translation>
    </message>
</context>
<context>
    <name>models</name>
    <message>
        <source>loading {0}</source>
        <translation>加载中 {0}</translation>
    </message>
    <message>
        <source>loading</source>
        <translation>加载中</translation>
    </message>
    <message>
        <source>warm</source>
        <translation>已加载</translation>
    </message>
    <message>
        <source>unloading</source>
        <translation>卸载中</translation>
    </message>
    <message>
        <source>failed</source>
        <translation>失败</translation>
    </message>
    <message>
        <source>unusable</source>
        <translation>不可用</translation>
    </message>
    <message>
        <source>cold</source>
        <translation>未加载</translation>
    </message>
    <message>
        <source>{0} of {1} context</source>
        <translation>上下文 {0} / {1}</translation>
    </message>
    <message>
        <source>{0} context</source>
        <translation>上下文 {0}</translation>
    </message>
</context>
<context>
    <name>routing</name>
    <message>
        <source>lowest latency</source>
        <translation>延迟最低</translation>
    </message>
    <message>
        <source>priority</source>
        <translation>优先级</translation>
    </message>
    <message>
        <source>round robin</source>
        <translation>轮流</translation>
    </message>
    <message>
        <source>least busy</source>
        <translation>最空闲</translation>
    </message>
    <message>
        <source>quality</source>
        <translation>质量</translation>
    </message>
    <message>
        <source>chat</source>
        <translation>聊天</translation>
    </message>
    <message>
        <source>code</source>
        <translation>代码</translation>
    </message>
    <message>
        <source>reasoning</source>
        <translation>推理</translation>
    </message>
    <message>
        <source>every prompt</source>
        <translation>所有提示词</translation>
    </message>
    <message>
        <source>when {0}</source>
        <translation>当{0}时</translation>
    </message>
    <message>
        <source> or </source>
        <translation>或</translation>
    </message>
    <message>
        <source> and </source>
        <translation>且</translation>
    </message>
    <message>
        <source>not {0}</source>
        <translation>不满足{0}</translation>
    </message>
    <message>
        <source>models tagged “{0}”</source>
        <translation>带有标签“{0}”的模型</translation>
    </message>
    <message>
        <source>writing</source>
        <translation>写作</translation>
    </message>
    <message>
        <source>translation</source>
        <translation>翻译</translation>
    </message>
    <message>
        <source>the task is {0}</source>
        <translation>任务是{0}</translation>
    </message>
    <message>
        <source>at least {0} certain</source>
        <translation>把握至少 {0}</translation>
    </message>
    <message>
        <source>at most {0} certain</source>
        <translation>把握至多 {0}</translation>
    </message>
    <message>
        <source>it is light</source>
        <translation>问题简单</translation>
    </message>
    <message>
        <source>it is not light</source>
        <translation>问题不简单</translation>
    </message>
    <message>
        <source>the language is {0}</source>
        <translation>语言是{0}</translation>
    </message>
    <message>
        <source>the script is {0}</source>
        <translation>文字是 {0}</translation>
    </message>
    <message>
        <source>it has code</source>
        <translation>含有代码</translation>
    </message>
    <message>
        <source>it has no code</source>
        <translation>不含代码</translation>
    </message>
    <message>
        <source>it has a code block</source>
        <translation>含有代码块</translation>
    </message>
    <message>
        <source>it has no code block</source>
        <translation>不含代码块</translation>
    </message>
    <message>
        <source>it has a stack trace</source>
        <translation>含有堆栈跟踪</translation>
    </message>
    <message>
        <source>it has no stack trace</source>
        <translation>不含堆栈跟踪</translation>
    </message>
    <message>
        <source>it asks a question</source>
        <translation>含有问句</translation>
    </message>
    <message>
        <source>it asks no question</source>
        <translation>不含问句</translation>
    </message>
    <message>
        <source>it wants steps</source>
        <translation>要求分步回答</translation>
    </message>
    <message>
        <source>it wants no steps</source>
        <translation>不要求分步回答</translation>
    </message>
    <message>
        <source>it has a link</source>
        <translation>含有链接</translation>
    </message>
    <message>
        <source>it has no link</source>
        <translation>不含链接</translation>
    </message>
    <message>
        <source>it has formulas</source>
        <translation>含有公式</translation>
    </message>
    <message>
        <source>it has no formulas</source>
        <translation>不含公式</translation>
    </message>
    <message>
        <source>it offers choices</source>
        <translation>含有选项</translation>
    </message>
    <message>
        <source>it offers no choices</source>
        <translation>不含选项</translation>
    </message>
    <message>
        <source>there is a system prompt</source>
        <translation>有系统提示词</translation>
    </message>
    <message>
        <source>there is no system prompt</source>
        <translation>没有系统提示词</translation>
    </message>
    <message>
        <source>it has one of {0}</source>
        <translation>含有 {0} 之一</translation>
    </message>
    <message>
        <source>it has all of {0}</source>
        <translation>含有全部 {0}</translation>
    </message>
    <message>
        <source>it matches {0}</source>
        <translation>匹配 {0}</translation>
    </message>
    <message>
        <source>at least {0} characters</source>
        <translation>至少 {0} 个字符</translation>
    </message>
    <message>
        <source>at most {0} characters</source>
        <translation>至多 {0} 个字符</translation>
    </message>
    <message>
        <source>at least {0} lines</source>
        <translation>至少 {0} 行</translation>
    </message>
    <message>
        <source>at most {0} lines</source>
        <translation>至多 {0} 行</translation>
    </message>
    <message>
        <source>at least {0} numbers</source>
        <translation>至少 {0} 个数字</translation>
    </message>
    <message>
        <source>at most {0} numbers</source>
        <translation>至多 {0} 个数字</translation>
    </message>
    <message>
        <source>at least {0} tokens</source>
        <translation>至少 {0} 个词元</translation>
    </message>
    <message>
        <source>at most {0} tokens</source>
        <translation>至多 {0} 个词元</translation>
    </message>
    <message>
        <source>at least {0} messages</source>
        <translation>至少 {0} 条消息</translation>
    </message>
    <message>
        <source>at most {0} messages</source>
        <translation>至多 {0} 条消息</translation>
    </message>
    <message>
        <source>at least {0} prompts</source>
        <translation>至少 {0} 次提问</translation>
    </message>
    <message>
        <source>at most {0} prompts</source>
        <translation>至多 {0} 次提问</translation>
    </message>
    <message>
        <source>asked by {0}</source>
        <translation>来自{0}</translation>
    </message>
    <message>
        <source>{0} is loaded</source>
        <translation>{0} 已加载</translation>
    </message>
    <message>
        <source>{0} is busy</source>
        <translation>{0} 正忙</translation>
    </message>
    <message>
        <source>memory is low</source>
        <translation>内存不足</translation>
    </message>
    <message>
        <source>memory is not low</source>
        <translation>内存充足</translation>
    </message>
    <message>
        <source>this window</source>
        <translation>本窗口</translation>
    </message>
    <message>
        <source>the quick prompt</source>
        <translation>快速提问</translation>
    </message>
    <message>
        <source>a program</source>
        <translation>其他程序</translation>
    </message>
    <message>
        <source>the command line</source>
        <translation>命令行</translation>
    </message>
    <message>
        <source>English</source>
        <translation>英语</translation>
    </message>
    <message>
        <source>Chinese</source>
        <translation>中文</translation>
    </message>
    <message>
        <source>Japanese</source>
        <translation>日语</translation>
    </message>
    <message>
        <source>Korean</source>
        <translation>韩语</translation>
    </message>
    <message>
        <source>another</source>
        <translation>其他语言</translation>
    </message>
</context>
</TS>
